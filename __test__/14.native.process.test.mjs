// What keeps the process alive, what does not, and what its end leaves behind.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { folder, script } from "./support/native.mjs";

const open = (path) => `
  const host = await h.dispatch.openHost(${path === undefined ? "" : `{ path: ${JSON.stringify(path)} }`});
  const types = { counter: h.numbers({ slow: async () => { await new Promise((r) => setTimeout(r, 50)); return "slow"; } }) };
  for (const [name, factory] of Object.entries(types)) host.register(name, factory);
`;

const read = (t, path) =>
  script(
    t,
    `${open(path)} console.log("n=" + h.text(await host.submit(h.actor("counter", "a"), "get", h.none, 2)));`,
  );

describe("a script", () => {
  it("that awaits one ordinary call gets its answer and ends with 0", async (t) => {
    const { code, out, err } = await script(
      t,
      `${open()} console.log(h.text(await host.submit(h.actor("counter", "a"), "slow", h.none, 2)));`,
    );

    assert.deepEqual({ code, out, err }, { code: 0, out: "slow\n", err: "" });
  });

  it("that only opened the addon ends at once", async (t) => {
    const { code, out, err } = await script(t, `console.log(typeof h.dispatch.environment);`, {
      timeoutMs: 10_000,
    });

    assert.deepEqual({ code, out, err }, { code: 0, out: "number\n", err: "" });
  });

  it("with idle live actors ends by itself", async (t) => {
    const { code } = await script(
      t,
      `${open()} for (let n = 0; n < 5; n += 1) await h.awake(host, h.actor("counter", n));`,
    );

    assert.equal(code, 0);
  });

  it("ends by itself after a shutdown", async (t) => {
    const { code, out } = await script(
      t,
      `${open()} await h.awake(host, h.actor("counter", "a")); console.log((await host.shutdown(1000)).drained);`,
    );

    assert.deepEqual({ code, out }, { code: 0, out: "1\n" });
  });

  it("prints nothing of its own, whatever happens to its actors", async (t) => {
    const { code, out, err } = await script(
      t,
      `${open()}
      const failing = h.numbers({ fail() { throw new Error("x"); } }, {}, { onWake() { throw new Error("wake"); } });
      host.register("failing", failing);
      await host.submit(h.actor("failing", "a"), "fail", h.none, 2).catch(() => {});
      await host.shutdown(100);`,
    );

    assert.deepEqual({ code, out, err }, { code: 0, out: "", err: "" });
  });

  it("gets what Rust logs from the level it asked for, and nothing before or after", async (t) => {
    const { out } = await script(
      t,
      `${open()}
      const lines = [];
      await h.awake(host, h.actor("counter", 0));
      h.dispatch.setLog("debug", (line) => lines.push(line));
      await h.awake(host, h.actor("counter", 1));
      await h.until(() => lines.length > 0);
      h.dispatch.setLog(undefined);
      await h.turn();
      const before = lines.length;
      await h.awake(host, h.actor("counter", 2));
      console.log(JSON.stringify({ before, after: lines.length, line: lines[0] }));`,
    );

    const { before, after, line } = JSON.parse(out);
    assert.equal(after, before);
    assert.equal(line.level, "debug");
    assert.match(line.target, /^greenroom/);
    assert.equal(typeof line.fields, "object");
    assert.equal(line.lost, 0);
  });

  it("has no listener on any signal, and dies of SIGINT as it would without the addon", async (t) => {
    const { signal, out } = await script(
      t,
      `${open()}
      await h.awake(host, h.actor("counter", "a"));
      const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"].map((name) => process.listenerCount(name));
      console.log(JSON.stringify(signals));
      setInterval(() => {}, 1000);
      console.log("ready");`,
      { meet: (child) => child.kill("SIGINT") },
    );

    assert.equal(signal, "SIGINT");
    assert.match(out, /\[0,0,0,0\]/);
  });

  it("ends at once with the code of process.exit() in an action", async (t) => {
    const { code, out } = await script(
      t,
      `${open()}
      host.register("leaver", h.numbers({ leave() { process.exit(7); } }));
      await host.submit(h.actor("leaver", "a"), "leave", h.none, 2);
      console.log("never");`,
    );

    assert.deepEqual({ code, out }, { code: 7, out: "" });
  });
});

describe("a change that nobody waits for", () => {
  it("is on disk after a natural end", async (t) => {
    const path = folder(t);
    await script(
      t,
      `${open(path)}
      const bag = await h.awake(host, h.actor("counter", "a"));
      h.dispatch.inPlace(bag, () => h.add(bag, "5"));`,
    );

    const { out } = await read(t, path);

    assert.equal(out, "n=5\n");
  });

  it("is on disk after process.exit() in the same turn", async (t) => {
    const path = folder(t);
    const { code } = await script(
      t,
      `${open(path)}
      const bag = await h.awake(host, h.actor("counter", "a"));
      h.add(bag, "6");
      process.exit(3);`,
    );

    const { out } = await read(t, path);

    assert.deepEqual({ code, out }, { code: 3, out: "n=6\n" });
  });

  it("is on disk after process.exit() with its commit on the way and another change made", async (t) => {
    const path = folder(t);
    await script(
      t,
      `${open(path)}
      const bag = await h.awake(host, h.actor("counter", "a"));
      h.add(bag, "1");
      await h.turn();
      h.add(bag, "1");
      process.exit(0);`,
    );

    const { out } = await read(t, path);

    assert.equal(out, "n=2\n");
  });

  it("is on disk after a natural end where answers do not wait", async (t) => {
    const path = folder(t);
    const types = `host.register("counter", h.numbers({}, { durability: "interval", stateSaveIntervalMs: 200 }));`;
    await script(
      t,
      `${open(path)} ${types} await host.submit(h.actor("counter", "a"), "add", h.bytes(4), 2);`,
    );

    const { out } = await read(t, path);

    assert.equal(out, "n=4\n");
  });

  it("is on disk after process.exit() where answers do not wait", async (t) => {
    const path = folder(t);
    const types = `host.register("counter", h.numbers({}, { durability: "interval", stateSaveIntervalMs: 60000 }));`;
    await script(
      t,
      `${open(path)} ${types} await host.submit(h.actor("counter", "a"), "add", h.bytes(4), 2); process.exit(0);`,
    );

    const { out } = await read(t, path);

    assert.equal(out, "n=4\n");
  });

  it("does not keep the process when the next save is far away and everything is stored", async (t) => {
    const types = `host.register("counter", h.numbers({}, { durability: "interval", stateSaveIntervalMs: 50 }));`;
    const { code } = await script(
      t,
      `${open()} ${types} await host.submit(h.actor("counter", "a"), "add", h.bytes(4), 2);`,
      { timeoutMs: 10_000 },
    );

    assert.equal(code, 0);
  });
});

describe("the context of asynchronous calls", () => {
  it("in which the host was opened does not leak into what others call", async (t) => {
    const { out } = await script(
      t,
      `
      import { AsyncLocalStorage } from "node:async_hooks";
      const als = new AsyncLocalStorage();
      const seen = [];
      const look = () => { seen.push(als.getStore() ?? null); };
      const host = await als.run("the one who opened", async () => {
        const host = await h.dispatch.openHost();
        host.register("looker", h.numbers({ look }));
        await host.submit(h.actor("looker", "a"), "look", h.none, 2);
        return host;
      });
      await host.submit(h.actor("looker", "a"), "look", h.none, 2);
      await als.run("another", () => host.submit(h.actor("looker", "a"), "look", h.none, 2));
      console.log(JSON.stringify(seen));
      `,
    );

    assert.equal(out, "[null,null,null]\n");
  });

  it("in which the process was first held is not kept for as long as it lives", async (t) => {
    const { out } = await script(
      t,
      `
      import { AsyncLocalStorage } from "node:async_hooks";
      import { createRequire } from "node:module";
      import { setFlagsFromString } from "node:v8";
      import { runInNewContext } from "node:vm";
      const require = createRequire(${JSON.stringify(import.meta.url)});
      const { holdProcess } = require("../dist/native/clockwork.js");
      setFlagsFromString("--expose-gc");
      const gc = runInNewContext("gc");
      const als = new AsyncLocalStorage();
      const held = () => {
        const store = { of: "a request" };
        return { hold: als.run(store, holdProcess), store: new WeakRef(store) };
      };
      const { hold, store } = held();
      await new Promise((resolve) => setTimeout(resolve, 1));
      gc();
      console.log(store.deref() === undefined);
      hold.unref();
      `,
    );

    assert.equal(out, "true\n");
  });

  it("in which the addon was loaded does no harm", async (t) => {
    const { code, out } = await script(
      t,
      `
      import { createRequire } from "node:module";
      import { AsyncLocalStorage } from "node:async_hooks";
      import { Worker, isMainThread } from "node:worker_threads";
      const require = createRequire(${JSON.stringify(import.meta.url)});
      const worker = new Worker(\`
        const { AsyncLocalStorage } = require("node:async_hooks");
        const als = new AsyncLocalStorage();
        (async () => {
          const { dispatch, NapiActorFactory } = als.run("loader", () => require(\${JSON.stringify(${JSON.stringify(
            "entry",
          )})}));
          const host = await dispatch.openHost();
          host.register("plain", new NapiActorFactory({ actions: { get: async () => Buffer.from("ok") } }));
          const bytes = await host.submit({ name: "plain", key: [], create: true }, "get", new Uint8Array(0), 2);
          await host.shutdown(100);
          require("node:worker_threads").parentPort.postMessage(Buffer.from(bytes).toString());
        })();
      \`.replace('"entry"', JSON.stringify(require.resolve("../dist/native/index.js"))), { eval: true });
      worker.on("message", (message) => console.log(message));
      `,
    );

    assert.deepEqual({ code, out }, { code: 0, out: "ok\n" });
  });
});
