// How a registry and a process end, next to others.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Worker } from "node:worker_threads";
import { actor, setup } from "../dist/index.js";
import { folder, script } from "./support/native.mjs";

const counter = (options = {}) =>
  actor({
    state: { n: 0 },
    options,
    actions: {
      add: (c) => ++c.state.n,
      get: (c) => c.state.n,
      hold(c) {
        c.keepAwake(new Promise(() => {}));
      },
    },
  });

const open = (path, options = {}) =>
  setup({ use: { counter: counter() }, storage: path, logging: { level: "silent" }, ...options });

const INDEX = JSON.stringify(new URL("../dist/index.js", import.meta.url).href);

/** A worker that opens the folder and does as it is told. */
function worker(t, path) {
  const made = new Worker(
    `const { parentPort, workerData } = require("node:worker_threads");
    import(${INDEX}).then(({ actor, setup }) => {
      const counter = actor({ state: { n: 0 }, actions: { add: (c) => ++c.state.n, get: (c) => c.state.n } });
      const registry = setup({ use: { counter }, storage: workerData, threads: "shared", logging: { level: "silent" } });
      parentPort.on("message", async ([what, key]) => {
        try {
          const value = what === "shutdown" ? await registry.shutdown({ deadline: 2000 }) : await registry.client().counter.getOrCreate(key)[what]();
          parentPort.postMessage({ value });
        } catch (error) { parentPort.postMessage({ code: error.group + "/" + error.code }); }
      });
    });`,
    { eval: true, workerData: path },
  );
  t.after(() => made.terminate());
  return (...message) =>
    new Promise((resolve, reject) => {
      made.once("message", resolve);
      made.once("error", reject);
      made.postMessage(message);
    });
}

describe("process.exit()", () => {
  it("does not wait for a save that was only asked for", async (t) => {
    const started = Date.now();
    const { code, out } = await script(
      t,
      `const { actor, setup } = await import(${INDEX});
      const a = actor({ state: { n: 0 }, options: { durability: "interval", stateSaveInterval: 60_000 },
        actions: { add: (c) => ++c.state.n, save: (c) => { void c.saveState({ immediate: true }); return ++c.state.n; } } });
      const registry = setup({ use: { a }, storage: ${JSON.stringify(folder(t))}, logging: { level: "silent" } });
      const one = registry.client().a.getOrCreate("a");
      await one.add();
      void one.save();
      await Promise.resolve(); await Promise.resolve();
      console.log("exits");
      process.on("exit", () => { const at = Date.now(); setup.at = at; });
      process.exit(0);`,
    );

    assert.deepEqual({ code, out }, { code: 0, out: "exits\n" });
    assert.ok(Date.now() - started < 4_500, `it took ${Date.now() - started} ms`);
  });
});

describe("the shutdown of a registry", () => {
  it("leaves another one of the same thread on the same folder alone", async (t) => {
    const path = folder(t);
    const [first, second] = [open(path), open(path)];
    t.after(() => second.shutdown());
    await first.client().counter.getOrCreate("a").add();
    await second.client().counter.getOrCreate("a").add();

    await first.shutdown();

    assert.equal(await second.client().counter.getOrCreate("a").add(), 3);
    assert.equal(await second.client().counter.getOrCreate("new").add(), 1);
    await assert.rejects(first.client().counter.getOrCreate("a").add(), { code: "shut_down" });
    assert.equal((await second.shutdown()).drained, 2);
  });

  it("that is the last one of all frees the folder", async (t) => {
    const path = folder(t);
    for (let round = 1; round <= 3; round += 1) {
      const both = [open(path), open(path)];
      for (const registry of both) await registry.client().counter.getOrCreate("a").get();
      await both[0].client().counter.getOrCreate("a").add();
      await Promise.all(both.map((registry) => registry.shutdown()));
    }
    const last = open(path, { lockTimeout: 100 });
    t.after(() => last.shutdown());

    assert.equal(await last.client().counter.getOrCreate("a").get(), 3);
  });

  it("in one thread leaves the others of a shared folder alone, and its actors move", async (t) => {
    const path = folder(t);
    const here = open(path, { threads: "shared" });
    t.after(() => here.shutdown());
    const there = worker(t, path);
    assert.equal(await here.client().counter.getOrCreate("mine").add(), 1);
    assert.deepEqual(await there("add", "theirs"), { value: 1 });

    const { value: report } = await there("shutdown");

    assert.deepEqual(report, { drained: 1, notDrained: [] });
    assert.deepEqual(await there("get", "theirs"), { code: "registry/shut_down" });
    assert.equal(await here.client().counter.getOrCreate("theirs").add(), 2);
    assert.equal(await here.client().counter.getOrCreate("mine").add(), 2);
  });

  it("in one thread breaks what does not end in time, and says so", async (t) => {
    const path = folder(t);
    const here = open(path, { threads: "shared" });
    const there = worker(t, path);
    assert.deepEqual(await there("add", "theirs"), { value: 1 });
    await here.client().counter.getOrCreate("mine").hold();

    const report = await here.shutdown({ deadline: 100 });

    assert.deepEqual(
      report.notDrained.map(({ key }) => key),
      [["mine"]],
    );
    assert.deepEqual(await there("add", "mine"), { value: 1 });
    assert.deepEqual(await there("shutdown"), { value: { drained: 2, notDrained: [] } });
  });
});
