// The client against the server itself.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { encode as encodeCbor } from "cbor-x";
import { createClient } from "greenroom/client";
import { WebSocket } from "ws";
import { actor, event, queue, UserError } from "../dist/index.js";
import { inMemory } from "./support/registry.mjs";

const room = actor({
  createState: (_c, input = { topic: "none" }) => ({ topic: input.topic, wakes: 0 }),
  createConnState(_c, params) {
    if (params?.name === "eve") throw new UserError("not you", { code: "unwanted" });
    return { name: params?.name ?? "nobody", calls: 0 };
  },
  events: { said: event(), secret: event({ canSubscribe: () => false }) },
  queues: { jobs: queue(), ignored: queue() },
  async run(c) {
    for await (const message of c.queue.iter({ names: ["jobs"], completable: true })) {
      await message.complete([message.body, "done"]);
    }
  },
  onWebSocket(c, socket) {
    socket.send(`hello ${c.conn.params?.name}`);
    socket.addEventListener("message", ({ data }) => socket.send(data));
  },
  onConnect: (_c, conn) => conn.send("said", `welcome ${conn.state.name}`),
  onWake(c) {
    c.state.wakes += 1;
  },
  async onRequest(c, request) {
    const { pathname, search } = new URL(request.url);
    const said = [request.method, pathname + search, request.headers.get("x-app")];
    return Response.json([...said, await request.text(), c.conn?.params ?? null], { status: 201 });
  },
  actions: {
    echo: (_c, ...args) => args,
    topic: (c) => c.state.topic,
    wakes: (c) => c.state.wakes,
    say: (c, text) => c.broadcast("said", text),
    who(c) {
      c.conn.state.calls += 1;
      return [c.conn.state.name, c.conn.state.calls, c.conns.size];
    },
    refuse() {
      throw new UserError("full", { code: "full", metadata: { left: 0 } });
    },
    fail() {
      throw new Error("a secret");
    },
    leave: (c) => c.conn.disconnect("room.closed"),
    rest: (c) => c.sleep(),
    take: async (c) => {
      const messages = await c.queue.tryNextBatch({ names: ["ignored"], count: 10 });
      return messages.map(({ body }) => body);
    },
    never: () => new Promise(() => {}),
    group: { inner: (_c, n) => n + 1n },
  },
});

const values = [
  5n,
  -(2n ** 80n),
  undefined,
  null,
  0.1,
  Number.NaN,
  "é😀",
  new Uint8Array([1, 2]),
  new Uint8Array([3]).buffer,
  new Date(1_234_567_890_123),
  new Set([1, new Set(["a"])]),
  new Map([[{ k: 1 }, [undefined]]]),
  new Float64Array([1.5]),
  /a+/gi,
  ["$x", 1],
  { deep: [{ er: [1n] }] },
];
/** Those that JSON has, with pairs for what it has not. */
const plain = [5n, undefined, null, 0.1, "é😀", new Uint8Array([1, 2]), new Set([1n]), ["$x", 1]];

let registry;
let listener;
const clients = [];
const connect = (options) => {
  const client = createClient({ endpoint: listener.url, webSocket: WebSocket, ...options });
  clients.push(client);
  return client;
};
const told = (on) => new Promise((resolve) => on((...args) => resolve(args)));

before(async () => {
  registry = inMemory({ room });
  listener = await registry.listen({ port: 0 });
});
after(async () => {
  for (const client of clients) await client.dispose();
  await registry.shutdown();
});

for (const [encoding, sent] of [
  ["cbor", values],
  ["json", plain],
]) {
  describe(`a client in ${encoding}`, () => {
    it("gets back the values that it sends, over HTTP and over a connection", async () => {
      const handle = connect({ encoding }).room.getOrCreate(["values", encoding]);
      const conn = handle.connect();

      assert.deepEqual(await handle.echo(...sent), sent);
      assert.deepEqual(await conn.echo(...sent), sent);
      assert.deepEqual(await handle.echo("$BigInt", "1"), ["$BigInt", "1"]);
      assert.deepEqual(await conn.echo("$BigInt", "1"), ["$BigInt", "1"]);
      assert.equal(await conn.group.inner(1n), 2n);
    });

    it("hears events, from the greeting on", async () => {
      const handle = connect({ encoding }).room.getOrCreate(["events", encoding]);
      const conn = handle.connect({ name: "ada" });
      const heard = [];
      conn.on("said", (text) => heard.push(text));
      await conn.ready;
      const last = told((listener) =>
        conn.on("said", (text) => text instanceof Set && listener(text)),
      );

      // Another way than the connection's: behind an answer of that the subscription stands.
      await assert.rejects(conn.refuse());
      await handle.say(1n);
      await conn.say(new Set(["x"]));

      assert.deepEqual(await last, [new Set(["x"])]);
      assert.deepEqual(heard, ["welcome ada", 1n, new Set(["x"])]);
    });

    it("is told what an action threw, and nothing of what was not meant for it", async () => {
      const handle = connect({ encoding }).room.getOrCreate(["errors", encoding]);
      const conn = handle.connect();

      for (const target of [handle, conn]) {
        await assert.rejects(target.refuse(), {
          group: "user",
          code: "full",
          message: "full",
          metadata: { left: 0 },
        });
        await assert.rejects(target.fail(), (error) => {
          assert.equal(error.group, "rivetkit");
          assert.equal(error.code, "internal_error");
          assert.doesNotMatch(error.message, /secret/);
          return true;
        });
        await assert.rejects(target.missing(), { group: "actor", code: "action_not_found" });
      }
      assert.equal(conn.connStatus, "connected");
    });

    it("is refused by a hook, with the reason of the hook", async () => {
      const handle = connect({ encoding }).room.getOrCreate(["hooks", encoding]);
      const conn = handle.connect({ name: "eve" });

      const reason = { group: "user", code: "unwanted", message: "not you" };
      await assert.rejects(conn.ready, reason);
      assert.equal(conn.connStatus, "idle");
    });

    it("runs the hooks for each call over HTTP", async () => {
      const rooms = connect({ encoding }).room;

      const ada = rooms.getOrCreate(["calls", encoding], { params: { name: "ada" } });
      assert.deepEqual(await ada.who(), ["ada", 1, 1]);
      assert.deepEqual(await ada.who(), ["ada", 1, 1]);
      const eve = rooms.getOrCreate(["calls", encoding], { params: { name: "eve" } });
      await assert.rejects(eve.who(), { group: "user", code: "unwanted" });
    });
  });
}

describe("a connection", () => {
  it("stays open while its actor sleeps, and keeps its state", async () => {
    const client = connect();
    const conn = client.room.getOrCreate("sleeper").connect({ name: "ada" });
    const seen = [];
    conn.onStatusChange((status) => seen.push(status));
    assert.deepEqual(await conn.who(), ["ada", 1, 1]);
    const { connId } = conn;

    await conn.rest();

    while ((await conn.wakes()) < 2) await new Promise(setImmediate);
    assert.deepEqual(await conn.who(), ["ada", 2, 1]);
    assert.deepEqual([seen, conn.connId], [["connected"], connId]);
  });

  it("that the actor ends is opened anew, as another one", async () => {
    const conn = connect().room.getOrCreate("ended").connect();
    await conn.ready;
    const { connId } = conn;
    const lost = told(conn.onError);
    const again = told((listener) => conn.onOpen(() => conn.connId !== connId && listener()));

    await conn.leave().catch(() => {});

    const [{ group, code }] = await lost;
    assert.deepEqual([group, code], ["room", "closed"]);
    await again;
  });

  it("is not let into events that it may not hear", async () => {
    const conn = connect().room.getOrCreate("secrets").connect();
    await conn.ready;
    const lost = told(conn.onError);

    const remove = conn.on("secret", () => {});

    const [{ group, code }] = await lost;
    assert.deepEqual([group, code], ["auth", "forbidden"]);
    remove();
  });
});

describe("an actor over the network", () => {
  it("is made with its input, whatever its key", async () => {
    const { room: rooms } = connect();
    for (const key of [["a"], [], ["", "x"], ["a,b"], ["a/b\\"], ["ü 😀"]]) {
      const handle = rooms.getOrCreate(["made", ...key], { createWithInput: { topic: key } });

      assert.deepEqual(await handle.topic(), key);
      const id = await handle.resolve();
      assert.deepEqual(await rooms.getForId(id).topic(), key);
      assert.equal(
        await registry
          .client()
          .room.get(["made", ...key])
          .resolve(),
        id,
      );
    }
    const long = rooms.getOrCreate("long", { createWithInput: { topic: "x".repeat(20_000) } });
    assert.equal((await long.topic()).length, 20_000);
  });

  it("gets the input that was passed, whatever values it has", async () => {
    const { room: rooms } = connect();
    for (const [at, topic] of [plain, values, ["$BigInt", "1"]].entries()) {
      const handle = rooms.getOrCreate(["input", String(at)], { createWithInput: { topic } });
      assert.deepEqual(await handle.topic(), topic);
      const made = await rooms.create(["input", "made", String(at)], { input: { topic } });
      assert.deepEqual(await made.topic(), topic);
      const own = registry.client().room.getOrCreate(["input", "own", String(at)], {
        createWithInput: { topic },
      });
      assert.deepEqual(await own.topic(), topic);
    }
  });

  it("gets the input of a client that writes pairs into its CBOR", async () => {
    const input = Buffer.from(
      encodeCbor({
        topic: [
          ["$BigInt", "5"],
          ["$Set", [1]],
          ["$$x", 1],
        ],
      }),
    );
    const response = await fetch(`${listener.url}/actors`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: "room", key: "pairs", input: input.toString("base64") }),
    });
    assert.equal(response.status, 200);

    const topic = await connect().room.get("pairs").topic();
    assert.deepEqual(topic, [5n, new Set([1]), ["$x", 1]]);
  });

  it("is made once", async () => {
    const { room: rooms } = connect();

    const made = await rooms.create("once", { input: { topic: 1n } });

    assert.equal(await made.topic(), 1n);
    await assert.rejects(rooms.create("once"), { group: "actor", code: "duplicate_key" });
    await assert.rejects(rooms.get("never").topic(), { group: "actor", code: "not_found" });
  });
});

describe("send() of a handle and of a connection", () => {
  it("puts a message into a queue, and waits for its end where it is asked to", async () => {
    const handle = connect().room.getOrCreate("queues");
    const conn = handle.connect();

    for (const target of [handle, conn]) {
      assert.equal(await target.send("ignored", { n: 1n }), undefined);
      const ended = await target.send("jobs", { n: 1n, set: new Set([1]) }, { wait: true });
      assert.deepEqual(ended, {
        status: "completed",
        response: [{ n: 1n, set: new Set([1]) }, "done"],
      });
      const late = await target.send("ignored", "x", { wait: true, timeout: 10 });
      assert.equal(late.status, "timedOut");
      await assert.rejects(target.send("typo", 1), { group: "queue", code: "not_declared" });
    }
  });
});

describe("send() with a policy", () => {
  it("keeps the first message of a key, and holds others back", async () => {
    const handle = connect().room.getOrCreate("kept");
    await handle.send("ignored", "first", { dedupeKey: "k" });
    await handle.send("ignored", "second", { dedupeKey: "k" });
    await handle.send("ignored", "later", { delay: 600_000 });
    await handle.send("ignored", "last");
    assert.deepEqual(await handle.take(), ["first", "last"]);
  });
});

describe("webSocket() of a handle", () => {
  it("reaches onWebSocket, with the parameters of the handle", async () => {
    const handle = connect().room.getOrCreate("sockets", { params: { name: "ada" } });

    const socket = await handle.webSocket("/any/where?x=1");
    const heard = [];
    const third = new Promise((resolve) => {
      socket.addEventListener("message", ({ data }) => {
        heard.push(typeof data === "string" ? data : [...new Uint8Array(data)]);
        if (heard.length === 3) resolve();
      });
    });
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    socket.send("text");
    socket.send(new Uint8Array([1, 2]));

    await third;
    assert.deepEqual(heard, ["hello ada", "text", [1, 2]]);
    socket.close();
  });
});

describe("fetch() of a handle", () => {
  it("reaches onRequest, with path, query, headers, body and the parameters of the handle", async () => {
    const handle = connect({ headers: { "x-app": "1" } }).room.getOrCreate("raw", {
      params: { name: "zo\u00eb \u007f" },
    });

    const response = await handle.fetch("/files/a%20b?x=1&rvt=2", { method: "PUT", body: "hi" });
    assert.equal(response.status, 201);
    const [method, path, app, body, params] = await response.json();
    assert.deepEqual([method, path, app, body], ["PUT", "/files/a%20b?x=1&rvt=2", "1", "hi"]);
    assert.deepEqual(params, { name: "zo\u00eb \u007f" });

    const request = new Request("http://anywhere/other", { method: "POST", body: "again" });
    const [, again, , text] = await (await handle.fetch(request)).json();
    assert.deepEqual([again, text], ["/other", "again"]);
  });
});

describe("a server that ends", () => {
  it("rejects calls on their way, and takes the connection again when it is back", async () => {
    const own = inMemory({ room });
    const { port, url } = await own.listen({ port: 0 });
    const client = createClient({ endpoint: url, webSocket: WebSocket });
    const conn = client.room.getOrCreate("back").connect();
    await conn.ready;
    const call = assert.rejects(conn.never());
    await conn.topic();

    await own.shutdown({ deadline: 0 });
    await call;
    const waiting = conn.topic();
    const next = inMemory({ room });
    await next.listen({ port });

    assert.equal(await waiting, "none");
    await client.dispose();
    await next.shutdown();
  });
});
