// Environments come and go; whoever waits for one that is gone is answered.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, it } from "node:test";
import { Worker } from "node:worker_threads";

import {
  actor,
  awake,
  bytes,
  dispatch,
  folder,
  none,
  numbers,
  opened,
  text,
  until,
} from "./support/native.mjs";

const entry = createRequire(import.meta.url).resolve("../dist/native/index.js");

/** A worker that opens `path` and runs `name`; resolves when it is ready. */
async function runner(path, name, body = "") {
  const worker = new Worker(
    `
    const { parentPort, workerData } = require("node:worker_threads");
    const { dispatch, NapiActorFactory } = require(workerData.entry);
    const forever = setInterval(() => {}, 1000);
    (async () => {
      const host = await dispatch.openHost({ path: workerData.path, shared: true });
      let calls = 0;
      const actions = {
        never: () => { calls += 1; parentPort.postMessage({ calls }); return new Promise(() => {}); },
        quick: async () => Buffer.from("quick"),
        leave: () => process.exit(5),
        busy: async () => { for (;;); },
      };
      host.register(workerData.name, new NapiActorFactory({ actions }));
      parentPort.on("message", (message) => { if (message === "end") { clearInterval(forever); parentPort.close(); } });
      ${body}
      parentPort.postMessage("ready");
    })();
    `,
    { eval: true, workerData: { entry, path, name } },
  );
  await new Promise((resolve, reject) => {
    worker.on("message", (message) => message === "ready" && resolve());
    worker.once("error", reject);
    worker.once("exit", (code) => reject(new Error(`the worker ended with ${code}`)));
  });
  return worker;
}

const outcome = (promise) =>
  promise.then(
    (value) => ({ value: text(value) }),
    (error) => ({ error }),
  );

/** Waits until a worker's actions have begun `count` times. */
const begun = (worker, count) =>
  new Promise((resolve) => {
    worker.on("message", (message) => message.calls >= count && resolve());
  });

const gone = ({ error }) => {
  assert.equal(error?.group, "actor", String(error));
  assert.equal(error.code, "environment_gone");
  assert.equal(error.metadata.retryable, true);
};

describe("callers of an environment that ends", () => {
  it("are all answered, for 20 environments with 21 calls each on the way", {
    timeout: 60_000,
  }, async (t) => {
    const path = folder(t);
    const host = await opened(t, { here: numbers() }, { path, shared: true });

    for (let round = 0; round < 4; round += 1) {
      const workers = await Promise.all(
        Array.from({ length: 5 }, (_, n) => runner(path, `w${round}_${n}`)),
      );
      const calls = [];
      for (const n of workers.keys()) {
        for (let call = 0; call < 21; call += 1) {
          calls.push(outcome(host.submit(actor(`w${round}_${n}`, call % 4), "never", none, 2)));
        }
      }
      // Some have begun, some are queued, some still look for their actor.
      await begun(workers[0], 1);
      await Promise.all(workers.map((worker) => worker.terminate()));

      const outcomes = await Promise.all(calls);

      assert.equal(outcomes.length, 105);
      for (const { error } of outcomes) {
        const { group, code } = error ?? {};
        const expected = ["actor/environment_gone", "actor/not_registered"];
        assert.ok(expected.includes(`${group}/${code}`), `${group}/${code}: ${error}`);
      }
    }

    assert.equal(text(await host.submit(actor("here", "a"), "get", none, 2)), "0");
  });

  it("that ends by process.exit() in an action are answered", async (t) => {
    const path = folder(t);
    const host = await opened(t, {}, { path, shared: true });
    const worker = await runner(path, "leaver");
    const exited = new Promise((resolve) => worker.once("exit", resolve));

    const never = outcome(host.submit(actor("leaver", "b"), "never", none, 2));
    await begun(worker, 1);
    const leave = outcome(host.submit(actor("leaver", "a"), "leave", none, 2));

    gone(await leave);
    gone(await never);
    assert.equal(await exited, 5);
  });

  it("that ends naturally are answered", async (t) => {
    const path = folder(t);
    const host = await opened(t, {}, { path, shared: true });
    const worker = await runner(path, "idler");
    const never = outcome(host.submit(actor("idler", "a"), "never", none, 2));
    await begun(worker, 1);

    worker.postMessage("end");

    gone(await never);
  });

  it("that is stuck in a loop are answered when it is terminated", async (t) => {
    const path = folder(t);
    const host = await opened(t, {}, { path, shared: true });
    const worker = await runner(path, "stuck");
    const busy = outcome(host.submit(actor("stuck", "a"), "busy", none, 2));
    const behind = outcome(host.submit(actor("stuck", "a"), "quick", none, 2));
    await until(async () => (await host.list({ name: "stuck" })).actors[0]?.awake === true);

    await worker.terminate();

    gone(await busy);
    gone(await behind);
  });

  it("may call again, and another environment runs the actor", async (t) => {
    const path = folder(t);
    const host = await opened(t, {}, { path, shared: true });
    const target = actor("mover", "a");
    const first = await runner(path, "mover");
    assert.equal(text(await host.submit(target, "quick", none, 2)), "quick");
    await first.terminate();
    const second = await runner(path, "mover");

    assert.equal(text(await host.submit(target, "quick", none, 2)), "quick");
    await second.terminate();
  });
});

describe("an environment that ends", () => {
  it("leaves the others, their actors and their commits alone", async (t) => {
    const path = folder(t);
    const host = await opened(t, { here: numbers() }, { path, shared: true });
    const target = actor("here", "a");
    const bag = await awake(host, target);
    const worker = await runner(path, "there");

    const writes = Array.from({ length: 50 }, () => host.submit(target, "add", none, 2));
    await worker.terminate();
    await Promise.all(writes);

    assert.equal(bag.stopped, undefined);
    assert.equal(text(await host.submit(target, "get", none, 2)), "50");
  });

  it("while it waits for others drops their answers", async (t) => {
    const path = folder(t);
    let release;
    const blocked = new Promise((resolve) => {
      release = resolve;
    });
    const host = await opened(
      t,
      { here: numbers({ wait: () => blocked }) },
      { path, shared: true },
    );
    const waiting = `host.submit({ name: "here", key: ["a"], create: true }, "wait", new Uint8Array(0), 2).catch(() => {});`;
    const worker = await runner(path, "there", waiting);
    await until(() => [...dispatch.bags.values()].some((bag) => bag.open.size > 0));

    await worker.terminate();
    release();

    assert.equal(text(await host.submit(actor("here", "a"), "get", none, 2)), "0");
    for (const bag of dispatch.bags.values()) assert.equal(bag.open.size, 0);
  });

  it("a hundred times over leaves nothing behind", { timeout: 60_000 }, async () => {
    for (let n = 0; n < 25; n += 1) {
      await Promise.all(
        Array.from({ length: 4 }, async () => {
          const worker = new Worker(`require(${JSON.stringify(entry)});`, { eval: true });
          const code = await new Promise((resolve, reject) => {
            worker.once("error", reject);
            worker.once("exit", resolve);
          });
          assert.equal(code, 0);
        }),
      );
    }
  });
});

describe("an actor of another environment", () => {
  it("is called like one of this, with its errors", async (t) => {
    const path = folder(t);
    const host = await opened(t, {}, { path, shared: true });
    const worker = await runner(path, "far");
    const target = actor("far", "a");

    assert.equal(text(await host.submit(target, "quick", bytes(1), 2)), "quick");
    assert.equal(host.live(target), undefined);
    await assert.rejects(host.submit(target, "nope", none, 2), { code: "action_not_found" });
    await worker.terminate();
  });
});

describe("an environment that loads the addon twice", () => {
  it("has two copies on one dispatch, and each works", async () => {
    const source = `
      const { parentPort } = require("node:worker_threads");
      const load = () => require(${JSON.stringify(entry)});
      const first = load();
      for (const key of Object.keys(require.cache)) if (!key.endsWith(".node")) delete require.cache[key];
      const second = load();
      const use = async ({ dispatch, NapiActorFactory }, word) => {
        const host = await dispatch.openHost();
        const actions = {
          say: async (_, { ctx }) => {
            ctx.runtimeState().word = word;
            await ctx.requestSaveAndWait({ immediate: true });
            return Buffer.from(ctx.runtimeState().word);
          },
        };
        host.register("sayer", new NapiActorFactory({ actions }));
        const said = await host.submit({ name: "sayer", key: [], create: true }, "say", new Uint8Array(0), 2);
        await host.shutdown(100);
        return Buffer.from(said).toString();
      };
      (async () => {
        const same = first.dispatch === second.dispatch;
        parentPort.postMessage([same, await use(first, "one"), await use(second, "two")]);
      })();
    `;
    const worker = new Worker(source, { eval: true });
    const said = new Promise((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    const code = new Promise((resolve) => worker.once("exit", resolve));

    assert.deepEqual(await said, [true, "one", "two"]);
    assert.equal(await code, 0);
  });
});
