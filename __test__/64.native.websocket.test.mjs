// The contract's `onWebSocket` and its `WebSocket`.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { bytes, numbers, opened, until } from "./support/native.mjs";
import { openRaw } from "./support/socket.mjs";

/** A host that listens in front of one type of actors, and what happens to their sockets. */
async function listening(t, body = () => {}, settings = {}, more = {}) {
  const seen = { events: [], payloads: [], hooks: [] };
  const callbacks = {
    onWebSocket: (error, payload) => {
      seen.payloads.push({ error, ...payload });
      payload.ws.setEventCallback((...event) => seen.events.push(event));
      return body(payload);
    },
    ...more,
  };
  const host = await opened(t, { counter: numbers({}, settings, callbacks) });
  const { host: name, port } = await host.listen({ host: "127.0.0.1", port: 0 });
  return { seen, url: `http://${name}:${port}` };
}

describe("onWebSocket", () => {
  it("gets the socket and its request before any message, and then events with one argument", async (t) => {
    const { seen, url } = await listening(t);

    const socket = await openRaw(url, "counter", ["a"], "chat?x=1");
    socket.send("text");
    socket.send(Buffer.from([1, 2]));
    await until(() => seen.events.length === 2, "both messages");

    const [{ error, ctx, conn, request }] = seen.payloads;
    assert.equal(error, null);
    assert.equal(ctx.actorId().length > 0, true);
    assert.deepEqual([request.method, request.uri], ["GET", "/websocket/chat?x=1"]);
    assert.equal(typeof conn.id(), "string");
    assert.deepEqual(seen.events, [
      [{ kind: "message", binary: false, data: "text", messageIndex: 1 }],
      [{ kind: "message", binary: true, data: Buffer.from([1, 2]), messageIndex: 2 }],
    ]);
  });

  it("sends text and bytes, and refuses text that is no UTF-8", async (t) => {
    const refused = [];
    const { url } = await listening(t, ({ ws }) => {
      ws.send(bytes("hello"), false);
      ws.send(Buffer.from([7]), true);
      try {
        ws.send(Buffer.from([0xff]), false);
      } catch (thrown) {
        refused.push(thrown.message);
      }
    });

    const socket = await openRaw(url, "counter", ["a"]);

    assert.equal(await socket.next(), "hello");
    assert.deepEqual(await socket.next(), Buffer.from([7]));
    assert.match(refused[0], /invalid_argument/);
  });

  it("closes the socket, behind what was sent, and hears of that as of the client's close", async (t) => {
    const { seen, url } = await listening(t, async ({ ws }) => {
      ws.send(bytes("last"), false);
      await ws.close(4000, "enough");
    });
    const socket = await openRaw(url, "counter", ["a"]);
    assert.equal(await socket.next(), "last");
    assert.deepEqual(await socket.closed, { code: 4000, reason: "enough" });
    await until(() => seen.events.length === 1, "its end");

    const { seen: other, url: elsewhere } = await listening(t);
    const left = await openRaw(elsewhere, "counter", ["a"]);
    left.send("x");
    await until(() => other.events.length === 1, "the message");
    left.close(1000, "bye");
    await until(() => other.events.length === 2, "its end");
    assert.deepEqual(other.events[1], [
      { kind: "close", code: 1000, reason: "bye", wasClean: true },
    ]);
  });

  it("that fails closes the socket with what it threw, at once or later", async (t) => {
    for (const fail of [
      () => {
        throw Object.assign(new Error("no"), { __type: "RivetError", group: "user", code: "no" });
      },
      async () => {
        await new Promise((resolve) => setImmediate(resolve));
        throw Object.assign(new Error("no"), { __type: "RivetError", group: "user", code: "no" });
      },
    ]) {
      const { url } = await listening(t, fail);
      const socket = await openRaw(url, "counter", ["a"]);
      const { code, reason } = await socket.closed;
      assert.equal(code, 1011);
      assert.match(reason, /^user\.no(#|$)/);
    }
  });

  it("is handed a socket again that outlives a sleep, with the numbers of its messages", async (t) => {
    const settings = { canHibernateWebsocket: true };
    const { seen, url } = await listening(t, () => {}, settings);
    const socket = await openRaw(url, "counter", ["a"]);
    socket.send("1");
    await until(() => seen.events.length === 1, "the first message");
    seen.payloads[0].ctx.sleep();
    socket.send("2");
    await until(() => seen.events.length === 2, "the second message");

    assert.equal(seen.payloads.length, 2);
    assert.equal(seen.payloads[0].conn.id(), seen.payloads[1].conn.id());
    assert.deepEqual(
      seen.events.map(([{ data, messageIndex }]) => [data, messageIndex]),
      [
        ["1", 1],
        ["2", 2],
      ],
    );
  });

  it("hears once of the end of a connection that its actor disconnects", async (t) => {
    const gone = [];
    const more = { onDisconnectFinal: (_error, { conn }) => void gone.push(conn.id()) };
    const { seen, url } = await listening(t, () => {}, {}, more);
    const socket = await openRaw(url, "counter", ["a"]);
    socket.send("x");
    await until(() => seen.events.length === 1, "the message");

    await seen.payloads[0].conn.disconnect("out");

    assert.deepEqual(await socket.closed, { code: 1000, reason: "out" });
    await until(() => seen.events.length === 2, "its end");
    assert.deepEqual(gone, [seen.payloads[0].conn.id()]);
    assert.equal(seen.events[1][0].kind, "close");
  });
});
