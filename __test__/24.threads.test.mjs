import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Worker } from "node:worker_threads";

import { actor } from "../dist/index.js";
import { inFolder, newFolder, until } from "./support/registry.mjs";

const dist = new URL("../dist/index.js", import.meta.url).href;
const config = `{
  state: { n: 0 },
  actions: {
    add: (c, by) => (c.state.n += by),
    fail: () => { throw new TypeError("from afar"); },
    thread: async () => (await import("node:worker_threads")).threadId,
  },
}`;
const counter = actor(
  new Function(`return ${config.replace("import(", "globalThis.importThreads(")}`)(),
);
globalThis.importThreads = () => import("node:worker_threads");

/** A worker thread that sets up the same actors on a folder and answers expressions over its client. */
function startWorker(folder, threads) {
  const worker = new Worker(
    `
    const { parentPort } = require("node:worker_threads");
    import(${JSON.stringify(dist)}).then(({ actor, setup }) => {
      const counter = actor(${config});
      const registry = setup({ use: { counter }, storage: ${JSON.stringify(folder)}, threads: "${threads}", lockTimeout: 0 });
      const client = registry.client();
      parentPort.on("message", async ({ id, body }) => {
        try {
          const run = new Function("client", "registry", "return " + body);
          parentPort.postMessage({ id, value: await run(client, registry) });
        } catch (error) {
          parentPort.postMessage({ id, error: { ...error, message: error.message } });
        }
      });
    });
    `,
    { eval: true },
  );
  let last = 0;
  const waiting = new Map();
  worker.on("message", ({ id, value, error }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error) reject(Object.assign(new Error(error.message), error));
    else resolve(value);
  });
  return {
    run: (body) =>
      new Promise((resolve, reject) => {
        last += 1;
        waiting.set(last, { resolve, reject });
        worker.postMessage({ id: last, body });
      }),
    stop: () => worker.terminate(),
  };
}

describe("a second thread on a folder", () => {
  it("is refused, naming the owner, unless both share it", async () => {
    const folder = await newFolder();
    const registry = inFolder(folder, { counter });
    await registry.client().counter.getOrCreate().add(1);
    for (const threads of ["exclusive", "shared"]) {
      const worker = startWorker(folder, threads);
      await assert.rejects(worker.run("client.counter.getOrCreate().add(1)"), {
        group: "storage",
        code: "locked",
      });
      await worker.stop();
    }
  });

  it("serves the same actors when both share it, and an actor lives in one of them", async () => {
    const folder = await newFolder();
    const registry = inFolder(folder, { counter }, { threads: "shared" });
    const worker = startWorker(folder, "shared");
    const here = registry.client().counter.getOrCreate("here");
    await here.add(1);

    assert.equal(await worker.run('client.counter.getOrCreate("here").add(10)'), 11);
    assert.equal(await worker.run('client.counter.getOrCreate("here").thread()'), 0);
    assert.equal(await worker.run('client.counter.getOrCreate("there").add(5)'), 5);
    assert.equal(await registry.client().counter.getOrCreate("there").add(1), 6);
    assert.notEqual(await registry.client().counter.getOrCreate("there").thread(), 0);
    await assert.rejects(registry.client().counter.getOrCreate("there").fail(), {
      group: "rivetkit",
      code: "internal_error",
      message: "from afar",
    });
    await worker.stop();
    // What it had in memory is gone with it; what it answered is durable.
    await until(
      () =>
        registry
          .client()
          .counter.getOrCreate("there")
          .add(0)
          .then(
            (n) => n === 6,
            () => false,
          ),
      "the actor lives here",
    );
  });
});
