// `greenroom/testing`: a clock that stands still, crashes and failures on demand.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { describe, it, mock } from "node:test";
import { promisify } from "node:util";

import { actor } from "../dist/index.js";
import { testRuntime } from "../dist/testing.js";
import { deferred } from "./support/registry.mjs";

const run = promisify(execFile);
const HOUR = 3_600_000;
const START = Date.UTC(2025, 0, 1);

/** A runtime that is closed after its test. */
function runtime(t, use, options = {}) {
  const started = testRuntime({ use, logging: { level: "silent" }, ...options });
  t.after(() => started.close());
  return started;
}

const counter = actor({
  state: { count: 0 },
  actions: {
    increment: (c) => ++c.state.count,
    get: (c) => c.state.count,
  },
});

/** Sleeps and says when it woke. */
const sleeper = actor({
  options: { actionTimeout: 24 * HOUR },
  actions: {
    async nap(c, ms) {
      await c.clock.sleep(ms);
      return c.now;
    },
    ping: () => "pong",
  },
});

describe("testRuntime()", () => {
  it("refuses what it does not know, and values of the wrong kind", () => {
    const refused = [
      [{ use: { counter }, storage: "x" }, /unknown key "storage" of testRuntime\(\)/],
      [{ use: { counter }, seed: -1 }, /seed of testRuntime\(\) is -1/],
      [{ use: { counter }, now: "today" }, /now of testRuntime\(\) is "today"/],
      [{ use: { counter }, now: new Date(Number.NaN) }, /now of testRuntime\(\)/],
      [{ use: { counter }, stallTimeout: -1 }, /stallTimeout of testRuntime\(\) is -1/],
      [{ use: { counter: {} } }, /not the result of actor\(\)/],
      [undefined, /testRuntime\(\) takes an object/],
    ];
    for (const [options, message] of refused) {
      assert.throws(() => testRuntime(options), { name: "TypeError", message });
    }
  });

  it("stands still until it is told to go on", async (t) => {
    const { client, clock } = runtime(t, { sleeper }, { now: new Date("2030-05-01T00:00:00Z") });
    const began = clock.now();
    assert.equal(began, Date.UTC(2030, 4, 1));
    const napped = client.sleeper.getOrCreate("a").nap(1_000);

    await clock.advance(999);
    assert.equal(clock.now(), began + 999);
    await clock.advance(1);

    assert.equal(await napped, began + 1_000);
  });

  it("shares nothing with another one", async (t) => {
    const [one, other] = [runtime(t, { counter }), runtime(t, { counter })];

    await one.client.counter.getOrCreate("a").increment();
    await one.clock.advance("1 day");

    assert.equal(await other.client.counter.getOrCreate("a").get(), 0);
    assert.equal(other.clock.now(), START);
  });

  it("hands deps to createVars", async (t) => {
    const asks = actor({
      createVars: (_c, deps) => ({ answer: deps.answer }),
      actions: { ask: (c) => c.vars.answer },
    });

    const { client } = runtime(t, { asks }, { deps: { answer: 42 } });

    assert.equal(await client.asks.getOrCreate().ask(), 42);
  });
});

describe("clock.advance()", () => {
  it("refuses what is no duration, and does nothing", async (t) => {
    const { clock } = runtime(t, { counter });
    for (const wrong of [-1, Number.NaN, Infinity, "soon", "3 parsecs", "1", "-1 day", null]) {
      await assert.rejects(clock.advance(wrong), { name: "TypeError", message: /advance\(\)/ });
    }
    assert.equal(clock.now(), START);
  });

  it("takes numbers and words", async (t) => {
    const { clock } = runtime(t, { counter });
    const lengths = { "5 ms": 5, "1 second": 1_000, "2 minutes": 120_000, "1.5 hours": 1.5 * HOUR };
    Object.assign(lengths, { "30 days": 720 * HOUR, "1 week": 168 * HOUR, "0 days": 0 });
    for (const [words, ms] of Object.entries(lengths)) {
      const before = clock.now();
      await clock.advance(words);
      assert.equal(clock.now() - before, ms, words);
    }
  });

  it("stops at everything on its way, in order, equal moments in the order of waiting", async (t) => {
    const woken = [];
    const naps = actor({
      actions: {
        async nap(c, name, ms) {
          await c.clock.sleep(ms);
          woken.push([name, c.now - START]);
        },
      },
    });
    const { client, clock } = runtime(t, { naps });
    const naming = { c: 300, a: 100, b: 200, a2: 100, late: 1_000 };
    const open = Object.entries(naming).map(([name, ms]) =>
      client.naps.getOrCreate(name.at(0)).nap(name, ms),
    );
    await clock.advance(0);

    await clock.advance(500);

    const expected = [
      ["a", 100],
      ["a2", 100],
      ["b", 200],
      ["c", 300],
    ];
    assert.deepEqual(woken, expected);
    await clock.advance(500);
    await Promise.all(open);
    assert.deepEqual(woken.at(-1), ["late", 1_000]);
  });

  it("runs an hourly loop for a year, each hour once", async (t) => {
    const hours = [];
    const hourly = actor({
      options: { noSleep: true },
      run: async (c) => {
        for (;;) {
          await c.clock.sleep(HOUR);
          hours.push(c.now);
        }
      },
      actions: { ping: () => "pong" },
    });
    const { client, clock } = runtime(t, { hourly });
    await client.hourly.getOrCreate().ping();

    await clock.advance("365 days");

    assert.equal(hours.length, 8_760);
    assert.ok(hours.every((at, n) => at === START + (n + 1) * HOUR));
  });

  it("lets time stand still while a function works for real", async (t) => {
    const seen = [];
    const reads = actor({
      options: { actionTimeout: 24 * HOUR },
      actions: {
        async work(c) {
          for (let n = 0; n < 20; n += 1) await readFile(new URL(import.meta.url));
          await new Promise((resolve) => setTimeout(resolve, 20));
          seen.push(c.now - START);
          await c.clock.sleep(HOUR);
          seen.push(c.now - START);
          await new Promise((resolve) => setTimeout(resolve, 20));
          await c.clock.sleep(HOUR);
          seen.push(c.now - START);
        },
      },
    });
    const { client, clock } = runtime(t, { reads });
    const worked = client.reads.getOrCreate().work();

    await clock.advance("1 day");

    await worked;
    assert.deepEqual(seen, [0, HOUR, 2 * HOUR]);
  });

  it("knows that a function waits for another actor, which waits on the clock", async (t) => {
    const chain = actor({
      actions: {
        async next(c, depth) {
          await c.clock.sleep(1_000);
          if (depth === 0) return c.now - START;
          return c
            .client()
            .chain.getOrCreate(String(depth))
            .next(depth - 1);
        },
      },
    });
    const { client, clock } = runtime(t, { chain });
    const end = client.chain.getOrCreate("first").next(49);

    await clock.advance("50 seconds");

    assert.equal(await end, 50_000);
  });

  it("waits for work in keepAwake and waitUntil, which may wait on the clock themselves", async (t) => {
    const seen = [];
    const works = actor({
      actions: {
        async kept(c) {
          await c.keepAwake(c.clock.sleep(1_000));
          await c.keepAwake(new Promise((resolve) => setTimeout(resolve, 20)));
          seen.push(["kept", c.now - START]);
        },
        background(c) {
          const work = async () => {
            await new Promise((resolve) => setTimeout(resolve, 20));
            seen.push(["real", c.now - START]);
            await c.clock.sleep(500);
            seen.push(["slept", c.now - START]);
          };
          c.waitUntil(work());
        },
      },
    });
    const { client, clock } = runtime(t, { works });
    const works1 = client.works.getOrCreate("a");
    await works1.background();
    const kept = works1.kept();

    await clock.advance("1 hour");

    await kept;
    assert.deepEqual(seen, [
      ["real", 0],
      ["slept", 500],
      ["kept", 1_000],
    ]);
  });

  it("with 0 does what is on its way, and no time passes", async (t) => {
    const saved = [];
    const slow = actor({
      state: { n: 0 },
      actions: {
        async work(c) {
          await new Promise((resolve) => setTimeout(resolve, 10));
          c.state.n += 1;
          saved.push(c.state.n);
        },
      },
    });
    const { client, clock } = runtime(t, { slow });
    const open = [1, 2, 3].map(() => client.slow.getOrCreate().work());

    await clock.advance(0);

    assert.deepEqual(saved, [1, 2, 3]);
    assert.equal(clock.now(), START);
    await Promise.all(open);
  });

  it("rejects when a function works for too long, naming it, and can go on afterwards", async (t) => {
    const gate = deferred();
    const stuck = actor({ actions: { wait: () => gate.promise, ping: () => "pong" } });
    const { client, clock } = runtime(t, { stuck }, { stallTimeout: 50 });
    const waits = client.stuck.getOrCreate(["room", "7"]).wait();

    await assert.rejects(clock.advance("1 day"), (error) => {
      assert.equal(`${error.group}.${error.code}`, "testing.stalled");
      assert.match(error.message, /^wait of stuck \["room","7"\] works for more than 50 ms/);
      assert.equal(error.metadata.function, "wait");
      assert.ok(error.metadata.holds.length > 0);
      return true;
    });
    assert.equal(clock.now(), START);

    gate.resolve("free");
    await clock.advance(1_000);
    assert.equal(await waits, "free");
    assert.equal(clock.now(), START + 1_000);
  });

  it("called again while it runs goes on where that ends", async (t) => {
    const { clock } = runtime(t, { counter });

    await Promise.all([clock.advance(10), clock.advance("1 hour"), clock.advance(0)]);

    assert.equal(clock.now(), START + HOUR + 10);
  });

  it("moves nothing but the runtime: false timers may stand beside it", async (t) => {
    mock.timers.enable({ apis: ["setTimeout", "setInterval", "setImmediate", "Date"] });
    t.after(() => mock.timers.reset());
    const { client, clock } = runtime(t, { sleeper });
    const napped = client.sleeper.getOrCreate().nap(HOUR);

    await clock.advance("2 hours");

    assert.equal(await napped, START + HOUR);
    assert.equal(Date.now(), 0);
  });

  it("lets actions time out", async (t) => {
    const times = actor({
      options: { actionTimeout: 5_000 },
      actions: { nap: (c, ms) => c.clock.sleep(ms) },
    });
    const { client, clock } = runtime(t, { times });
    const late = assert.rejects(client.times.getOrCreate("a").nap(HOUR), {
      code: "action_timed_out",
    });

    await clock.advance(5_000);

    await late;
  });
});

describe("awake() and evict()", () => {
  it("tell who is awake and why, and put one to sleep", async (t) => {
    const tidy = [];
    const tidies = actor({
      onSleep: async (c) => {
        await c.clock.sleep(10);
        tidy.push(c.key);
      },
      actions: { nap: (c, ms) => c.clock.sleep(ms), ping: () => "pong" },
    });
    const test = runtime(t, { tidies });
    assert.deepEqual(await test.awake(), []);
    const [one, two] = ["one", "two"].map((key) => test.client.tidies.getOrCreate(key));
    await one.ping();
    const napping = two.nap(1_000);
    await test.clock.advance(0);

    const found = await test.awake();
    assert.deepEqual(
      found.map(({ name, key, holds }) => [name, key, holds.length]),
      [
        ["tidies", ["one"], 0],
        ["tidies", ["two"], 1],
      ],
    );

    await test.evict(one);
    assert.deepEqual(tidy, [["one"]]);
    assert.deepEqual(
      (await test.awake()).map(({ key }) => key),
      [["two"]],
    );
    await test.clock.advance(1_000);
    await napping;
  });

  it("know the sleep timeout by the clock", async (t) => {
    const test = runtime(t, { counter });
    await test.client.counter.getOrCreate("a").increment();

    await test.clock.advance(29_999);
    assert.equal((await test.awake()).length, 1);
    await test.clock.advance(1);

    assert.deepEqual(await test.awake(), []);
  });
});

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
