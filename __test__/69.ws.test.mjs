// The gateway through `ws`, the WebSocket client of most programs: what of the protocol of
// WebSockets itself has to be right.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";

import { WebSocket } from "ws";
import { actor, event } from "../dist/index.js";
import { actorUrl } from "./support/gateway.mjs";
import { inMemory, until } from "./support/registry.mjs";

const left = [];

const echo = actor({
  state: { said: 0 },
  events: { said: event() },
  createConnState: (_c, params) => ({ name: params?.name }),
  onDisconnect: (_c, conn) => void left.push(conn.state.name),
  onWebSocket(_c, socket) {
    socket.addEventListener("message", ({ data }) => {
      if (data === "close") socket.close(4000, "as you wish");
      else socket.send(data);
    });
  },
  actions: {
    say(c, text) {
      c.broadcast("said", text);
      return text.length;
    },
  },
});

describe("ws", () => {
  let registry;
  let url;
  before(async () => {
    registry = inMemory({ echo });
    ({ url } = await registry.listen({ port: 0 }));
  });
  after(() => registry.shutdown());

  /** A socket that is open, with what it hears; `path` within the actor. */
  async function open(path, protocols, options, key = ["a"]) {
    const address = actorUrl(url, "echo", key, path).replace("http:", "ws:");
    const socket = new WebSocket(address, protocols, options);
    const heard = [];
    const waiting = [];
    socket.on("message", (data, isBinary) => {
      const message = isBinary ? data : data.toString();
      const first = waiting.shift();
      if (first) first(message);
      else heard.push(message);
    });
    const closed = once(socket, "close").then(([code, reason]) => [code, reason.toString()]);
    await once(socket, "open");
    const next = () =>
      heard.length > 0
        ? Promise.resolve(heard.shift())
        : new Promise((resolve) => waiting.push(resolve));
    return { socket, next, closed };
  }

  const raw = (protocols, options, key) => open("websocket/", protocols, options, key);
  const connected = async (protocols = ["rivet", "rivet_encoding.json"], key = undefined) => {
    const opened = await open("connect", protocols, undefined, key);
    const [tag] = await frame(opened);
    assert.equal(tag, "Init");
    return opened;
  };
  const frame = async ({ next }) => {
    const { tag, val } = JSON.parse(await next()).body;
    return [tag, val];
  };
  const send = ({ socket }, tag, val) => socket.send(JSON.stringify({ body: { tag, val } }));
  const id = (n) => ["$BigInt", String(n)];

  it("calls actions and hears events", async () => {
    const opened = await connected();
    send(opened, "SubscriptionRequest", { eventName: "said", subscribe: true });
    send(opened, "ActionRequest", { id: id(7), name: "say", args: ["hello"] });

    assert.deepEqual(await frame(opened), ["Event", { name: "said", args: ["hello"] }]);
    assert.deepEqual(await frame(opened), ["ActionResponse", { id: id(7), output: 5 }]);
    opened.socket.close();
  });

  it("needs no sub-protocol, and gets `rivet` of several", async () => {
    const none = await connected([]);
    assert.equal(none.socket.protocol, "");
    const several = await connected(["mine", "rivet"]);
    assert.equal(several.socket.protocol, "rivet");
    none.socket.close();
    several.socket.close();
  });

  it("is told with a close what it did wrong", async () => {
    const { closed } = await open("connect", ["rivet", "rivet_encoding.xml"]);
    const [code, reason] = await closed;
    assert.equal(code, 1003);
    assert.match(reason, /^actor\.unsupported_websocket_encoding(#|$)/);

    for (const [message, expected] of [
      ["{", /^actor\.invalid_request(#|$)/],
      ["x".repeat(70_000), /^message\.incoming_too_long(#|$)/],
    ]) {
      const opened = await connected();
      opened.socket.send(message);
      const [code, reason] = await opened.closed;
      assert.equal(code, 1011);
      assert.match(reason, expected);
    }
  });

  it("gets back texts and bytes of any length, none included", async () => {
    const { socket, next } = await raw();
    for (const length of [0, 1, 125, 126, 65_535, 65_536, 1_000_000]) {
      socket.send("x".repeat(length));
      assert.equal((await next()).length, length);
      const bytes = Buffer.alloc(length, 7);
      socket.send(bytes);
      assert.deepEqual(await next(), bytes);
    }
    socket.close();
  });

  it("may send a message in parts, with a ping between them", async () => {
    const { socket, next } = await raw();
    socket.send("one ", { fin: false });
    socket.send("two ", { fin: false });
    socket.ping("between");
    const [pong] = await once(socket, "pong");
    assert.equal(pong.toString(), "between");
    socket.send("three", { fin: true });

    assert.equal(await next(), "one two three");
    socket.close();
  });

  it("gets answers to pings, in order", async () => {
    for (const { socket } of [await raw(), await connected()]) {
      const pongs = [];
      socket.on("pong", (data) => pongs.push(data.toString()));
      for (const text of ["", "1", "x".repeat(125)]) socket.ping(text);
      await until(() => pongs.length === 3, "the pongs");
      assert.deepEqual(pongs, ["", "1", "x".repeat(125)]);
      socket.close();
    }
  });

  it("may offer to compress, which is declined", async () => {
    const { socket, next } = await raw([], { perMessageDeflate: { threshold: 0 } });
    assert.equal(socket.extensions, "");
    socket.send("x".repeat(1_000));
    assert.equal(await next(), "x".repeat(1_000));
    socket.close();
  });

  it("closes with a code, and is closed with one", async () => {
    const one = await raw();
    one.socket.close(4001, "bye");
    assert.deepEqual(await one.closed, [4001, "bye"]);
    const two = await raw();
    two.socket.send("close");
    assert.deepEqual(await two.closed, [4000, "as you wish"]);
    const three = await connected();
    three.socket.close();
    assert.equal((await three.closed)[0], 1005);
  });

  it("that breaks the protocol of WebSockets is closed", async () => {
    const unmasked = await raw();
    unmasked.socket.send("x", { mask: false });
    assert.equal((await unmasked.closed)[0], 1002);

    const notText = await raw();
    notText.socket.send(Buffer.from([0xff]), { binary: false });
    const [code, reason] = await notText.closed;
    assert.equal(code, 1007);
    assert.match(reason, /^message\.invalid_utf8(#|$)/);
  });

  it("that vanishes is gone for the actor", async () => {
    const params = encodeURIComponent(JSON.stringify({ name: "vanished" }));
    const offer = ["rivet", "rivet_encoding.json", `rivet_conn_params.${params}`];
    const key = ["vanishes"];
    const sockets = [await raw(offer, undefined, key), await connected(offer, key)];
    for (const [before, { socket }] of sockets.entries()) {
      const gone = () => left.filter((name) => name === "vanished").length;
      assert.equal(gone(), before);
      socket.terminate();
      await until(() => gone() > before, "onDisconnect");
    }
  });
});
