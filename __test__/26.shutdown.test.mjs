import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { deferred, inFolder, inMemory, newFolder } from "./support/registry.mjs";

const dist = new URL("../dist/index.js", import.meta.url).href;

/** Runs a module, killed after ten seconds. */
function ended(body) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", body], {
      stdio: ["ignore", "pipe", "inherit"],
      timeout: 10_000,
    });
    let out = "";
    child.stdout.on("data", (data) => (out += data));
    child.on("close", (code, signal) => resolve({ code, signal, out }));
  });
}

describe("shutdown", () => {
  it("refuses a deadline that is none", async () => {
    const registry = inMemory({});

    await assert.rejects(
      registry.shutdown({ deadline: "soon" }),
      /deadline of shutdown\(\) is "soon"/,
    );
    await assert.rejects(registry.shutdown({ dedline: 1 }), /did you mean "deadline"/);
    assert.throws(
      () => registry.drainOnSignals({ deadline: -1 }),
      /deadline of shutdown\(\) is -1/,
    );
  });

  it("lets the process end though createState ends later", async () => {
    const end = await ended(`
      import { actor, setup } from ${JSON.stringify(dist)};
      const slow = actor({
        createState: async () => {
          process.stdout.write("begun ");
          await new Promise((resolve) => setTimeout(resolve, 1_000));
          process.stdout.write("ended");
          return { n: 1 };
        },
        actions: { ok: () => true },
      });
      const registry = setup({ use: { slow }, storage: ":memory:", logging: { level: "silent" } });
      const refused = registry.client().slow.getOrCreate().ok().catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 100));
      await registry.shutdown({ deadline: 100 });
      await refused;
    `);

    assert.deepEqual(end, { code: 0, signal: null, out: "begun ended" });
  });

  it("refuses every later call, also where nothing was ever opened", async () => {
    const idle = actor({ state: {}, actions: { ok: () => true } });
    const unopened = inMemory({ idle });
    const opened = inMemory({ idle });
    const handle = opened.client().idle.getOrCreate("k");
    await handle.ok();

    assert.deepEqual(await unopened.shutdown(), { drained: 0, notDrained: [] });
    assert.equal((await opened.shutdown()).drained, 1);

    await assert.rejects(unopened.client().idle.getOrCreate().ok(), {
      group: "registry",
      code: "shut_down",
    });
    await assert.rejects(handle.ok());
    await assert.rejects(opened.client().idle.getOrCreate("new").ok());
    await assert.rejects(opened.list());
  });

  it("lets work end, runs onSleep and keeps the state", async () => {
    const folder = await newFolder();
    const gate = deferred();
    const worker = actor({
      state: { done: 0, slept: 0 },
      onSleep: (c) => {
        c.state.slept += 1;
      },
      actions: {
        work: async (c) => {
          await gate.promise;
          c.state.done += 1;
          return "done";
        },
        read: (c) => c.state,
      },
    });
    const first = inFolder(folder, { worker });
    const handle = first.client().worker.getOrCreate();
    await handle.read();
    const work = handle.work();
    const down = first.shutdown({ deadline: 5_000 });
    setTimeout(gate.resolve, 30);

    assert.equal(await work, "done");
    assert.deepEqual(await down, { drained: 1, notDrained: [] });
    assert.equal(first.shutdown(), first.shutdown());
    const second = inFolder(folder, { worker });
    assert.deepEqual(await second.client().worker.get().read(), { done: 1, slept: 1 });
  });

  it("names what did not come to rest in time", async () => {
    const stuck = actor({
      state: {},
      actions: {
        hang: (c) => {
          c.keepAwake(new Promise(() => {}));
        },
      },
      options: { sleepGracePeriod: 60_000 },
    });
    const registry = inMemory({ stuck });
    await registry.client().stuck.getOrCreate(["a", "b"]).hang();

    const { notDrained } = await registry.shutdown({ deadline: 50 });

    assert.equal(notDrained.length, 1);
    assert.deepEqual([notDrained[0].name, notDrained[0].key], ["stuck", ["a", "b"]]);
    assert.ok(notDrained[0].holds.length > 0);
  });

  for (const durability of ["reply", "interval"]) {
    it(`stores what an actor changed that did not come to rest in time (${durability})`, async () => {
      const busy = actor({
        state: { n: 0 },
        actions: {
          work: (c) => {
            c.state.n += 1;
            void c.keepAwake(new Promise(() => {}));
          },
          hang: async (c) => {
            c.state.n += 1;
            await new Promise(() => {});
          },
          read: (c) => c.state.n,
        },
        options: { durability, stateSaveInterval: 600_000, sleepGracePeriod: 600_000 },
      });
      const folder = await newFolder();
      const registry = inFolder(folder, { busy });
      const handle = registry.client().busy.getOrCreate("k");
      await handle.work();
      const hanging = handle.hang();
      hanging.catch(() => {});

      const { notDrained } = await registry.shutdown({ deadline: 50 });

      assert.equal(notDrained.length, 1);
      await assert.rejects(hanging, { group: "registry", code: "shut_down" });
      const next = inFolder(folder, { busy }).client().busy.getOrCreate("k");
      assert.equal(await next.read(), 2);
    });
  }
});

describe("drainOnSignals", () => {
  /** Runs a program that drains, and sends it signals whenever it says a line. */
  function program(body, signals) {
    return new Promise((resolve) => {
      const child = spawn(process.execPath, ["--input-type=module", "-e", body], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      let out = "";
      child.stdout.on("data", (data) => {
        out += data;
        const signal = signals.shift();
        if (signal !== undefined) child.kill(signal);
      });
      child.on("close", (code, signal) => resolve({ code, signal, out }));
    });
  }
  const head = `
    import { actor, setup } from ${JSON.stringify(dist)};
    const one = actor({
      state: {},
      onSleep: async (c) => { console.log("onSleep"); if (process.env.SLOW) await new Promise((r) => setTimeout(r, 60_000)); },
      actions: { ok: () => true },
    });
    const registry = setup({ use: { one }, storage: ":memory:" });
    const stop = registry.drainOnSignals({ deadline: 120_000 });
    await registry.client().one.getOrCreate().ok();
    setInterval(() => {}, 1_000);
  `;

  it("drains, and lets the signal take its course", async () => {
    for (const signal of ["SIGTERM", "SIGINT"]) {
      const ended = await program(`${head} console.log("ready");`, [signal]);

      assert.deepEqual(ended, { code: null, signal, out: "ready\nonSleep\n" });
    }
  });

  it("does not wait for a second signal", async () => {
    const ended = await program(`process.env.SLOW = "1"; ${head} console.log("ready");`, [
      "SIGTERM",
      "SIGTERM",
    ]);

    assert.deepEqual(ended, { code: null, signal: "SIGTERM", out: "ready\nonSleep\n" });
  });

  const namespace = ["--pid", "--fork", "--mount-proc", process.execPath];
  const canBeFirst = spawnSync("unshare", [...namespace, "-e", ""]).status === 0;
  it("ends the first process of a container, which no signal ends by itself", {
    skip: canBeFirst ? false : "no namespace of processes can be made here",
  }, async () => {
    for (const [signals, slow, out] of [
      [["SIGTERM"], "", "onSleep\n"],
      [["SIGTERM", "SIGTERM"], "1", "onSleep\n"],
    ]) {
      const body = `
        process.env.SLOW = ${JSON.stringify(slow)};
        ${head}
        if (process.pid !== 1) throw new Error("not the first");
        for (const signal of ${JSON.stringify(signals)}) {
          process.kill(1, signal);
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      `;
      const args = [...namespace, "--input-type=module", "-e", body];
      const ended = spawnSync("unshare", args, { encoding: "utf8", timeout: 20_000 });
      assert.deepEqual([ended.status, ended.stdout], [143, out], ended.stderr);
    }
  });

  it("can be taken back", async () => {
    const ended = await program(`${head} stop(); console.log("ready");`, ["SIGTERM"]);

    assert.deepEqual(ended, { code: null, signal: "SIGTERM", out: "ready\n" });
  });
});
