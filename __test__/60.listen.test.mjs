// `registry.listen()`: who is served, and how it ends.

import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";

import { actor, UserError } from "../dist/index.js";
import { testRuntime } from "../dist/testing.js";
import { call } from "./support/gateway.mjs";
import { deferred, inMemory } from "./support/registry.mjs";

const counter = actor({
  state: { count: 0 },
  actions: {
    add: (c, by = 1) => {
      c.state.count += by;
      return c.state.count;
    },
    callerKind: (c) => c.caller,
    refuse: () => {
      throw new UserError("not today", { code: "closed", metadata: { until: 9 } });
    },
    fail: () => {
      throw new Error("a secret");
    },
  },
});

/** An actor whose `wait` tells that it has begun, and ends when it may go. */
function slowActor() {
  const [began, go] = [deferred(), deferred()];
  const wait = async () => {
    began.resolve();
    await go.promise;
    return "done";
  };
  return { slow: actor({ actions: { wait } }), began, go };
}

/** What a listener says that is closed. */
const refused = (url) =>
  // By a connection of its own: fetch() may try one that it has kept.
  assert.rejects(once(connect(Number(new URL(url).port), "127.0.0.1"), "connect"), {
    code: "ECONNREFUSED",
  });

describe("a registry that listens", () => {
  let registry;
  let listener;
  before(async () => {
    registry = inMemory({ counter });
    listener = await registry.listen({ port: 0 });
  });
  after(() => registry.shutdown());

  it("says where", () => {
    assert.equal(listener.host, "127.0.0.1");
    assert.ok(listener.port > 0);
    assert.equal(listener.url, `http://127.0.0.1:${listener.port}`);
  });

  it("answers health and metadata", async () => {
    const health = await (await fetch(`${listener.url}/health`)).json();
    assert.equal(health.status, "ok");
    assert.equal((await fetch(`${listener.url}/metadata`)).status, 200);
  });

  it("runs actions of the actors that calls in the process reach", async () => {
    assert.deepEqual(await call(listener.url, "counter", ["a"], "add", [2]), { output: 2 });
    assert.equal(await registry.client().counter.getOrCreate("a").add(3), 5);
    assert.deepEqual(await call(listener.url, "counter", ["a"], "callerKind"), {
      output: "client",
    });
  });

  it("tells clients what is meant for them, and of other errors the code alone", async () => {
    const { status, ...told } = await call(listener.url, "counter", ["a"], "refuse");
    assert.ok(status >= 400);
    assert.deepEqual(
      [told.group, told.code, told.message, told.metadata],
      ["user", "closed", "not today", { until: 9 }],
    );
    const failed = await call(listener.url, "counter", ["a"], "fail");
    assert.equal(failed.status, 500);
    assert.doesNotMatch(JSON.stringify(failed), /secret/);
    assert.match(failed.message, /internal error/i);
  });

  it("answers no page of another origin, and no name that leads here", async () => {
    const headers = { origin: "http://evil.example" };
    assert.equal((await fetch(`${listener.url}/actors?name=counter`, { headers })).status, 403);
    const asked = request(`${listener.url}/metadata`, { headers: { host: "evil.example" } });
    const [answer] = await once(asked.end(), "response");
    answer.resume();
    assert.equal(answer.statusCode, 403);
  });

  it("refuses an address that is taken, and one that others reach without a token", async () => {
    await assert.rejects(inMemory({ counter }).listen({ port: listener.port }), {
      group: "gateway",
      code: "address_unusable",
    });
    await assert.rejects(registry.listen({ host: "0.0.0.0", port: 0 }), {
      group: "gateway",
      code: "token_needed",
    });
  });

  it("refuses what it is not given right, naming it", async () => {
    for (const [options, pattern] of [
      [{ port: 65_536 }, /port of listen\(\) is 65536/],
      [{ port: "80" }, /port of listen\(\) is "80"/],
      [{ host: "" }, /host of listen\(\) is ""/],
      [{ token: "" }, /token of listen\(\) is none that every client can send/],
      [{ token: "a/b=" }, /token of listen\(\) is none that every client can send/],
      [{ origins: ["https://a.example/path"] }, /https:\/\/a\.example\/path/],
      [{ hosts: "a" }, /hosts of listen\(\) is "a", not a list/],
      [{ prot: 1 }, /prot/],
    ]) {
      await assert.rejects(registry.listen(options), pattern);
    }
  });

  it("is called `localhost` where that is asked for, and closes on its own", async () => {
    const other = await registry.listen({ host: "localhost", port: 0 });
    assert.equal((await fetch(`${other.url}/health`)).status, 200);
    await other.close();
    await other.close();
    await refused(`${other.url}/health`);
    assert.equal((await fetch(`${listener.url}/health`)).status, 200);
  });

  it("is joined by who asks for the same once more", async () => {
    const free = await registry.listen({ port: 0 });
    await free.close();
    const one = await registry.listen({ port: free.port });
    const two = await registry.listen({ port: free.port });
    await one.close();
    assert.equal((await fetch(`${two.url}/health`)).status, 200);
    await two.close();
    await refused(`${two.url}/health`);
  });
});

describe("a token", () => {
  it("is asked of everybody but who looks at health or metadata", async () => {
    const registry = inMemory({ counter });
    const { url } = await registry.listen({ port: 0, token: "t0k" });
    assert.equal((await fetch(`${url}/health`)).status, 200);
    assert.equal((await fetch(`${url}/actors?name=counter`)).status, 401);
    assert.equal((await call(url, "counter", [], "add")).status, 401);
    assert.deepEqual(await call(url, "counter", [], "add", [], { token: "t0k" }), { output: 1 });
    assert.equal((await call(url, "counter", [], "add", [], { token: "t0" })).status, 401);
    await registry.shutdown();
  });
});

describe("the end of a registry", () => {
  it("answers what has begun, and accepts nothing more", async () => {
    const { slow, began, go } = slowActor();
    const registry = inMemory({ slow });
    const { url, port } = await registry.listen({ port: 0 });
    const idle = connect(port, "127.0.0.1");
    await once(idle, "connect");
    const closed = once(idle.resume(), "close");
    const waits = call(url, "slow", [], "wait");
    await began.promise;
    const shutdown = registry.shutdown({ deadline: 5_000 });
    go.resolve();
    assert.deepEqual(await waits, { output: "done" });
    await closed;
    await shutdown;
    await refused(`${url}/health`);
    await assert.rejects(registry.listen({ port: 0 }), { group: "registry", code: "shut_down" });
  });
});

describe("errors that are shown", () => {
  it("reach clients whole where setup() says so, with a warning", async () => {
    const lines = [];
    const registry = inMemory(
      { counter },
      { exposeErrors: true, logging: { sink: (line) => lines.push(line) } },
    );
    const { url } = await registry.listen({ port: 0 });
    assert.match((await call(url, "counter", [], "fail")).message, /a secret/);
    assert.ok(lines.some(({ level, msg }) => level === "warn" && /exposeErrors/.test(msg)));
    await registry.shutdown();
  });
});

describe("a registry that listens beside one of a test", () => {
  it("is shut down as ever, with a request on its way", async (t) => {
    const { slow, began, go } = slowActor();
    const runtime = await testRuntime({ use: { counter } });
    t.after(() => runtime.close());
    const registry = inMemory({ slow });
    const { url } = await registry.listen({ port: 0 });
    const waits = call(url, "slow", [], "wait");
    await began.promise;
    const shutdown = registry.shutdown({ deadline: 5_000 });
    go.resolve();
    assert.deepEqual(await waits, { output: "done" });
    await shutdown;
  });
});
