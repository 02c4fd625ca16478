// Connections of clients outside of the process, and the forms of values that they read.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { actor, event, UserError } from "../dist/index.js";
import { call } from "./support/gateway.mjs";
import { inMemory, until } from "./support/registry.mjs";
import { openSocket } from "./support/socket.mjs";

const notes = [];
const seen = (c) => [c.request?.method, new URL(c.request?.url ?? "x:").pathname];

const remote = actor({
  state: { n: 0 },
  queues: { jobs: {}, closed: { canPublish: () => false } },
  events: { told: event(), secret: event({ canSubscribe: (c) => c.conn.params?.admin === true }) },
  onBeforeConnect: (c, params) => {
    notes.push(["before", params, c.caller, ...seen(c), c.request?.headers.get("x-own")]);
    if (params?.name === "eve") throw new UserError("not you", { code: "refused" });
  },
  createConnState: (_c, params) => ({ name: params?.name, n: 0 }),
  onConnect: (c, conn) => void notes.push(["connect", conn.params, ...seen(c)]),
  onDisconnect: (_c, conn) => void notes.push(["disconnect", conn.params]),
  onRequest: (c) => Response.json([c.conn?.params, c.conn?.state.name, c.conns.size]),
  actions: {
    echo: (_c, ...args) => args,
    types: (_c, ...args) => args.map((arg) => Object.prototype.toString.call(arg).slice(8, -1)),
    values: () => ({
      big: 5n,
      none: undefined,
      set: new Set([1]),
      pair: ["$x", 1],
      at: new Date(0),
    }),
    me: (c) => [c.caller, c.conn?.params, c.conn?.isHibernatable, c.conns.size],
    count: (c) => {
      c.conn.state.n += 1;
      return c.conn.state.n;
    },
    tell: (c, ...args) => c.broadcast("told", ...args),
    fail: () => {
      throw new UserError("no", { code: "no", metadata: { pair: ["$x", 1], big: 7n } });
    },
    nap: (c) => c.sleep(),
    take: async (c) => (await c.queue.tryNext())?.body,
    answer: async (c) => {
      const message = await c.queue.next({ completable: true });
      await message.complete({ big: message.body });
    },
  },
});

describe("clients elsewhere", () => {
  let registry;
  let url;
  let handle;
  before(async () => {
    registry = inMemory({ remote });
    ({ url } = await registry.listen({ port: 0 }));
    handle = registry.client().remote.getOrCreate("a");
  });
  after(() => registry.shutdown());

  const ask = (action, args = [], options = {}) =>
    call(url, "remote", ["a"], action, args, options);

  it("are connected for each call, with hooks that see their request", async () => {
    notes.length = 0;
    const answer = await ask("me", [], { params: { name: "ann" } });

    assert.deepEqual(answer.output, ["client", { name: "ann" }, false, 1]);
    assert.deepEqual(notes, [
      ["before", { name: "ann" }, "client", "POST", "/action/me", null],
      ["connect", { name: "ann" }, "POST", "/action/me"],
      ["disconnect", { name: "ann" }],
    ]);
  });

  it("are told why they are refused", async () => {
    const { status, group, code } = await ask("me", [], { params: { name: "eve" } });

    assert.deepEqual([status, group, code], [400, "user", "refused"]);
  });

  it("send and get values in the forms of the protocol", async () => {
    const sent = [
      ["$BigInt", "5"],
      ["$Undefined", 0],
      ["$Set", [1]],
      ["$$x", 1],
      ["$Uint8Array", "AQI="],
    ];

    assert.deepEqual((await ask("types", sent)).output, [
      "BigInt",
      "Undefined",
      "Set",
      "Array",
      "Uint8Array",
    ]);
    assert.deepEqual((await ask("echo", sent)).output, sent);
    assert.deepEqual((await ask("values")).output, {
      big: ["$BigInt", "5"],
      none: ["$Undefined", 0],
      set: ["$Set", [1]],
      pair: ["$$x", 1],
      at: "1970-01-01T00:00:00.000Z",
    });
    assert.deepEqual(await handle.values(), {
      big: 5n,
      none: undefined,
      set: new Set([1]),
      pair: ["$x", 1],
      at: new Date(0),
    });
  });

  it("read the metadata of errors in these forms", async () => {
    const { code, metadata } = await ask("fail");

    assert.deepEqual([code, metadata], ["no", { pair: ["$$x", 1], big: ["$BigInt", "7"] }]);
    await assert.rejects(handle.fail(), { metadata: { pair: ["$x", 1], big: "7" } });
  });

  it("are told that they send what nobody means", async () => {
    const { status, group, code } = await ask("echo", [["$BigInt", "five"]]);

    assert.deepEqual([status, group, code], [400, "actor", "invalid_request"]);
  });

  it("are a connection of the requests that the author answers", async () => {
    const query = new URLSearchParams({
      "rvt-namespace": "default",
      "rvt-method": "getOrCreate",
      "rvt-runner": "default",
      "rvt-key": "a",
    });
    const response = await fetch(`${url}/gateway/remote/request/x?${query}`, {
      headers: { "x-rivet-conn-params": JSON.stringify({ name: "ann" }) },
    });

    assert.deepEqual(await response.json(), [{ name: "ann" }, "ann", 1]);
  });

  it("send messages to queues, where that is allowed", async () => {
    const send = async (queue, body, more = {}) => {
      const query = new URLSearchParams({
        "rvt-namespace": "default",
        "rvt-method": "getOrCreate",
        "rvt-runner": "default",
        "rvt-key": "a",
      });
      const response = await fetch(`${url}/gateway/remote/queue/${queue}?${query}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-rivet-encoding": "json" },
        body: JSON.stringify({ body, ...more }),
      });
      const { status, group, code, response: answer } = await response.json();
      return response.ok ? [status, answer] : [response.status, `${group}.${code}`];
    };

    assert.deepEqual(await send("jobs", ["$BigInt", "5"]), ["completed", undefined]);
    assert.equal(await handle.take(), 5n);
    const waits = send("jobs", 7, { wait: true, timeout: 5_000 });
    await handle.answer();
    assert.deepEqual(await waits, ["completed", { big: 7 }]);
    assert.deepEqual(await send("jobs", 1, { wait: true, timeout: 1 }), ["timedOut", undefined]);
    assert.deepEqual(await send("closed", 1), [403, "auth.forbidden"]);
    assert.deepEqual(await send("none", 1), [404, "queue.not_declared"]);
  });

  it("over a socket hear events in their form, and those in the process in theirs", async () => {
    const local = handle.connect({ name: "local" });
    const all = [];
    local.on("told", (...args) => all.push(args));
    await local.ready;
    const socket = await openSocket(url, "remote", ["a"], { name: "ann" });
    const [tag, init] = await socket.next();
    socket.subscribe("told");
    const id = socket.call("tell", ["$BigInt", "5"], ["$$x", 1]);

    const [event, told] = await socket.next();
    const [response, answered] = await socket.next();

    assert.deepEqual([tag, init.actorId], ["Init", await handle.resolve()]);
    assert.deepEqual(
      [event, told],
      [
        "Event",
        {
          name: "told",
          args: [
            ["$BigInt", "5"],
            ["$$x", 1],
          ],
        },
      ],
    );
    assert.deepEqual([response, answered.id], ["ActionResponse", ["$BigInt", String(id)]]);
    await until(() => all.length === 1, "the event in the process");
    assert.deepEqual(all, [[5n, ["$x", 1]]]);
    socket.end();
    await local.dispose();
  });

  it("over a socket keep their connection while the actor sleeps", async () => {
    const ours = () => notes.filter(([, params]) => params?.name === "bob").map(([what]) => what);
    const socket = await openSocket(url, "remote", ["b"], { name: "bob" });
    await socket.next();
    const count = async () => {
      socket.call("count");
      return (await socket.next())[1].output;
    };
    assert.equal(await count(), 1);
    socket.call("nap");
    await socket.next();
    await until(async () => {
      const { actors } = await registry.list({ name: "remote" });
      return actors.some((found) => found.key[0] === "b" && !found.awake);
    }, "the actor to sleep");

    assert.equal(await count(), 2);
    socket.end();
    await until(() => ours().length === 3, "onDisconnect");
    assert.deepEqual(ours(), ["before", "connect", "disconnect"]);
  });

  it("over a socket are refused what they may not hear", async () => {
    const socket = await openSocket(url, "remote", ["a"]);
    await socket.next();
    socket.subscribe("secret");

    const { code, reason } = await socket.closed;
    assert.equal(code, 1011);
    assert.match(reason, /^auth\.forbidden(#|$)/);
  });
});

describe("limits of an actor", () => {
  it("close the connection of a client that sends too much", async () => {
    const strict = actor({
      limits: { messagesPerSecond: 1, burst: 2 },
      actions: { ping: () => "pong" },
    });
    const registry = inMemory({ strict });
    const { url } = await registry.listen({ port: 0 });
    const socket = await openSocket(url, "strict", []);
    await socket.next();
    for (let n = 0; n < 5; n += 1) socket.call("ping");

    assert.equal((await socket.closed).code, 1008);
    await registry.shutdown();
  });
});
