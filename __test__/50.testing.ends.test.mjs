// `greenroom/testing`: crashes, restarts and failures on demand, and its end.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, it } from "node:test";
import { promisify } from "node:util";

import { actor } from "../dist/index.js";
import { testRuntime } from "../dist/testing.js";
import { deferred } from "./support/registry.mjs";
import { counter, HOUR, runtime, START } from "./support/testing.mjs";

const run = promisify(execFile);

describe("crash()", () => {
  it("loses what was not durable, keeps what was, and handles stay valid", async (t) => {
    const ends = [];
    const lazy = actor({
      state: { n: 0 },
      options: { durability: "interval", stateSaveInterval: 1_000 },
      onSleep: () => ends.push("onSleep"),
      actions: { add: (c) => ++c.state.n },
    });
    const test = runtime(t, { lazy });
    const handle = test.client.lazy.getOrCreate("a");
    assert.equal(await handle.add(), 1);
    await test.clock.advance(1_000);
    assert.equal(await handle.add(), 2);

    await test.crash();

    assert.equal(await handle.add(), 2);
    assert.deepEqual(ends, []);
  });

  it("rejects what was open, and refuses what it left behind", async (t) => {
    const gate = deferred();
    const left = deferred();
    const calls = actor({
      actions: {
        async work(c) {
          await gate.promise;
          left.resolve(c.client().calls.getOrCreate("other").ping());
        },
        nap: (c) => c.clock.sleep(HOUR),
        ping: () => "pong",
      },
    });
    const test = runtime(t, { calls });
    const handle = test.client.calls.getOrCreate("a");
    await handle.ping();
    const open = [handle.work(), handle.nap()].map((call) =>
      assert.rejects(call, { group: "testing", code: "crashed" }),
    );

    await test.crash();
    await Promise.all(open);
    gate.resolve();

    await assert.rejects(left.promise, { group: "testing", code: "crashed" });
    await test.clock.advance("1 day");
    assert.equal(await handle.ping(), "pong");
  });

  it("is one crash when it is asked for twice, and comes after a restart that is on its way", async (t) => {
    const test = runtime(t, { counter });
    const handle = test.client.counter.getOrCreate("a");
    await handle.increment();

    await Promise.all([test.crash(), test.crash()]);
    assert.equal(await handle.increment(), 2);
    await Promise.all([test.restart(), test.crash(), test.crash()]);

    assert.equal(await handle.increment(), 3);
  });

  it("may come again and again, and time goes on", async (t) => {
    const test = runtime(t, { counter });
    const handle = test.client.counter.getOrCreate("a");
    for (let n = 1; n <= 5; n += 1) {
      assert.equal(await handle.increment(), n);
      await test.clock.advance(1_000);
      await test.crash();
    }
    assert.equal(test.clock.now(), START + 5_000);
  });
});

describe("the time between two processes", () => {
  it("refuses what is no duration, and options that it does not know", async (t) => {
    const test = runtime(t, { counter });

    for (const end of ["crash", "restart"]) {
      await assert.rejects(test[end]({ down: -1 }), { name: "TypeError", message: /^down of / });
      await assert.rejects(test[end]({ up: 1 }), {
        name: "TypeError",
        message: /unknown key "up"/,
      });
      await assert.rejects(test[end](5), { name: "TypeError", message: /takes an object, not 5/ });
    }
    assert.equal(test.clock.now(), START);
  });

  it("passes on the clock, with nothing running, and calls wait for the next process", async (t) => {
    const seen = [];
    const wakes = actor({
      onWake: (c) => seen.push(c.now - START),
      actions: { ping: (c) => c.now - START },
    });
    const test = runtime(t, { wakes });
    const handle = test.client.wakes.getOrCreate("a");
    await handle.ping();

    const crashed = test.crash({ down: "1 hour" });
    const ping = handle.ping();
    await crashed;

    assert.equal(await ping, HOUR);
    await test.restart({ down: HOUR });
    assert.equal(test.clock.now(), START + 2 * HOUR);
    assert.equal(await handle.ping(), 2 * HOUR);
    assert.deepEqual(seen, [0, HOUR, 2 * HOUR]);
  });
});

describe("restart()", () => {
  it("lets everything come to rest, and keeps it", async (t) => {
    const ends = [];
    const lazy = actor({
      state: { n: 0 },
      options: { durability: "interval", stateSaveInterval: HOUR, sleepTimeout: HOUR },
      onSleep: async (c) => {
        await c.clock.sleep(5);
        ends.push(c.now - START);
      },
      actions: { add: (c) => ++c.state.n },
    });
    const test = runtime(t, { lazy });
    const handle = test.client.lazy.getOrCreate("a");
    await handle.add();

    await test.restart();

    assert.deepEqual(ends, [5]);
    assert.deepEqual(await test.awake(), []);
    assert.equal(await handle.add(), 2);
  });
});

describe("failNextCommit()", () => {
  it("fails one commit, which nobody sees the effects of", async (t) => {
    const test = runtime(t, { counter });
    const handle = test.client.counter.getOrCreate("a");
    await handle.increment();
    await test.failNextCommit();

    await assert.rejects(handle.increment(), { group: "storage", code: "full" });

    assert.equal(await handle.get(), 1);
    assert.equal(await handle.increment(), 2);
  });
});

describe("crashAt()", () => {
  it("refuses a point that does not exist", async (t) => {
    const test = runtime(t, { counter });

    await assert.rejects(test.crashAt("at_noon"), { name: "TypeError", message: /"at_noon"/ });
  });

  for (const [point, after] of [
    ["before_commit", 1],
    ["after_commit", 2],
  ]) {
    it(`"${point}" leaves ${after === 1 ? "nothing" : "all"} of the commit, and its caller without an answer`, async (t) => {
      const test = runtime(t, { counter });
      const handle = test.client.counter.getOrCreate("a");
      await handle.increment();
      const crashed = test.crashAt(point);
      await test.clock.advance(0);

      await assert.rejects(handle.increment(), { group: "testing", code: "crashed" });
      await crashed;

      assert.equal(await handle.get(), after);
      assert.equal(await handle.increment(), after + 1);
    });
  }

  it("may come while the clock is moved, which goes on in the next process", async (t) => {
    const saves = actor({
      state: { n: 0 },
      actions: {
        async save(c) {
          await c.clock.sleep(1_000);
          c.state.n += 1;
        },
        get: (c) => c.state.n,
      },
    });
    const test = runtime(t, { saves });
    const handle = test.client.saves.getOrCreate("a");
    const crashed = test.crashAt("before_commit");
    await test.clock.advance(0);
    // The first start of an actor is a commit too.
    const lost = assert.rejects(handle.save(), { code: "crashed" });
    await crashed;
    await lost;
    const again = test.crashAt("after_commit");
    await handle.get().catch(() => {});
    await again;
    const saved = handle.save();

    await test.clock.advance("1 minute");

    await saved;
    assert.equal(await handle.get(), 1);
    assert.equal(test.clock.now(), START + 60_000);
  });
});

describe("close()", () => {
  it("puts actors to sleep, refuses what comes, and gives the same again", async () => {
    const ends = [];
    const tidies = actor({ onSleep: () => ends.push("slept"), actions: { ping: () => "pong" } });
    const test = testRuntime({ use: { tidies } });
    const handle = test.client.tidies.getOrCreate("a");
    await handle.ping();

    await Promise.all([test.close(), test.close(), test[Symbol.asyncDispose]()]);

    assert.deepEqual(ends, ["slept"]);
    await assert.rejects(handle.ping(), { group: "registry", code: "shut_down" });
    await assert.rejects(test.clock.advance(1), { code: "shut_down" });
    await assert.rejects(test.crash(), { code: "shut_down" });
  });

  it("is not needed for the process to end, which ends with a runtime open", async () => {
    const code = `
      import { actor } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url))};
      import { testRuntime } from ${JSON.stringify(new URL("../dist/testing.js", import.meta.url))};
      const a = actor({ run: (c) => c.clock.sleep(1e9), actions: { ping: () => "pong" } });
      const { client, clock } = testRuntime({ use: { a } });
      console.log(await client.a.getOrCreate().ping());
      await clock.advance("1 day");
      console.log(clock.now());`;

    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", code], {
      timeout: 20_000,
    });

    assert.equal(stdout, `pong\n${START + 24 * HOUR}\n`);
  });

  it("is not needed for a worker to be terminated", async () => {
    const code = `
      import { Worker } from "node:worker_threads";
      for (let n = 0; n < 3; n += 1) {
        const worker = new Worker(\`
          import { parentPort } from "node:worker_threads";
          import { actor } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url))};
          import { testRuntime } from ${JSON.stringify(new URL("../dist/testing.js", import.meta.url))};
          const a = actor({ run: (c) => c.clock.sleep(1e9), actions: { ping: () => "pong" } });
          const { client, clock } = testRuntime({ use: { a } });
          await client.a.getOrCreate().ping();
          parentPort.postMessage("up");
          for (;;) await clock.advance("1 day");
        \`, { eval: true });
        await new Promise((resolve) => worker.once("message", resolve));
        await worker.terminate();
      }
      console.log("ended");`;

    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", code], {
      timeout: 30_000,
    });

    assert.equal(stdout, "ended\n");
  });
});

describe("one seed", () => {
  /** A day in which much happens at the same time, and what was seen of it. */
  async function trace(seed) {
    const seen = [];
    const worker = actor({
      createState: (c) => {
        seen.push(["created", c.actorId]);
        return { n: 0 };
      },
      onWake: (c) => seen.push(["woke", c.key.join()]),
      onSleep: (c) => seen.push(["slept", c.key.join()]),
      options: { sleepTimeout: 7_000, actionTimeout: HOUR },
      actions: {
        async step(c, n) {
          seen.push(["step", c.key.join(), n, c.now]);
          await c.clock.sleep(1_000 * (n % 5));
          c.state.n += 1;
          if (n > 0)
            await c
              .client()
              .worker.getOrCreate(String(n % 7))
              .step(n - 1);
          seen.push(["done", c.key.join(), n, c.now, c.state.n]);
        },
      },
    });
    const test = testRuntime({ use: { worker }, seed, logging: { level: "silent" } });
    const open = [];
    for (let n = 0; n < 12; n += 1) open.push(test.client.worker.getOrCreate(String(n)).step(n));
    const ended = Promise.allSettled(open);
    await test.clock.advance("10 seconds");
    await test.crash();
    await ended;
    seen.push(["crash", (await test.awake()).length]);
    const second = [3, 1, 2].map((n) => test.client.worker.getOrCreate(String(n)).step(n));
    await test.clock.advance("1 hour");
    await Promise.all(second);
    await test.restart();
    await test.close();
    return seen;
  }

  it("gives the same ids and the same order of events, another one other ids", async () => {
    const first = await trace(7);
    const ids = (seen) => seen.filter(([what]) => what === "created").map(([, id]) => id);
    assert.ok(first.length > 100, `only ${first.length} events`);

    for (let n = 0; n < 5; n += 1) assert.deepEqual(await trace(7), first);

    assert.notDeepEqual(ids(await trace(8)), ids(first));
  });
});
