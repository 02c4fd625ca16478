// Connections of the client, against a double of the server, on timers that the test moves.

import assert from "node:assert/strict";
import { once } from "node:events";
import { afterEach, describe, it } from "node:test";

import { createClient } from "greenroom/client";
import { WebSocket } from "ws";
import { gatewayDouble, manualTimers } from "./support/gateway-double.mjs";

let server;
let client;
let timers;

/** A handle on a double. `accept` is told of sockets. */
async function handleFor({ accept, encoding = "cbor", options, ...more } = {}) {
  server = await gatewayDouble({ accept });
  timers = manualTimers();
  client = createClient({ endpoint: server.url, encoding, webSocket: WebSocket, timers, ...more });
  return client.room.get("a", options);
}

/** Refuses a socket as the server does when a hook throws. */
function refuse(socket, group, code) {
  socket.frame("Error", { group, code, message: `${group} ${code}`, actionId: null });
  socket.close(1011, `${group}.${code}#ray1`);
  return false;
}

/** Resolves when `on(listener)` calls its listener. */
const told = (on) => new Promise((resolve) => on((...args) => resolve(args)));

const status = (conn, wanted) =>
  conn.connStatus === wanted
    ? Promise.resolve()
    : new Promise((resolve) => {
        const remove = conn.onStatusChange((now) => {
          if (now !== wanted) return;
          remove();
          resolve();
        });
      });

afterEach(async () => {
  await client?.dispose();
  await server?.close();
  client = undefined;
  server = undefined;
});

for (const encoding of ["cbor", "json"]) {
  describe(`a connection in ${encoding}`, () => {
    it("offers encoding, parameters and token, none of them in the URL", async () => {
      const options = { params: { name: "Zoë (1,2) +%", n: 1n } };
      const handle = await handleFor({ encoding, options, token: "secret" });

      const conn = handle.connect();
      await conn.ready;

      const [{ url, offered }] = server.sockets;
      const [rivet, form, params, token] = offered;
      assert.deepEqual(
        [rivet, form, token],
        ["rivet", `rivet_encoding.${encoding}`, "rivet_token.secret"],
      );
      assert.deepEqual(JSON.parse(decodeURIComponent(params.slice("rivet_conn_params.".length))), {
        name: "Zoë (1,2) +%",
        n: ["$BigInt", "1"],
      });
      assert.match(
        url,
        /^\/gateway\/room\/connect\?rvt-namespace=default&rvt-method=get&rvt-key=a$/,
      );
    });

    it("answers calls by their ids, in whatever order", async () => {
      const conn = (await handleFor({ encoding })).connect();
      const [slow, quick] = [conn.slow(1n), conn.group.quick([undefined])];
      await conn.ready;
      const [socket] = server.sockets;

      const [first, second] = [await socket.next(), await socket.next()];
      assert.deepEqual([first.name, second.name], ["slow", "group.quick"]);
      socket.frame("ActionResponse", { id: second.id, output: ["$BigInt", "7"] });
      assert.equal(await quick, 7n);
      const error = { group: "user", code: "no", message: "no", metadata: { a: 1 } };
      socket.frame("Error", { ...error, actionId: first.id });

      await assert.rejects(slow, error);
      assert.equal(conn.connStatus, "connected");
    });

    it("sends values that JSON has not, and hears them", async () => {
      const conn = (await handleFor({ encoding })).connect();
      const heard = told((listener) => conn.on("moved", listener));
      void conn.echo(5n, new Set([1])).catch(() => {});
      await conn.ready;
      const [socket] = server.sockets;

      assert.deepEqual(await socket.next(), {
        tag: "SubscriptionRequest",
        eventName: "moved",
        subscribe: true,
      });
      const { args } = await socket.next();
      const sent =
        encoding === "json"
          ? [
              ["$BigInt", "5"],
              ["$Set", [1]],
            ]
          : [5n, new Set([1])];
      assert.deepEqual(args, sent);
      socket.frame("Event", {
        name: "moved",
        args: [
          ["$BigInt", "5"],
          ["$Undefined", 0],
        ],
      });

      assert.deepEqual(await heard, [5n, undefined]);
    });
  });
}

describe("connStatus", () => {
  it("is connected once the server has said Init, and not when the socket is open", async () => {
    let socket;
    const handle = await handleFor({
      accept: (opened) => {
        socket = opened;
        return false;
      },
    });
    const seen = [];
    const conn = handle.connect();
    conn.onStatusChange((now) => seen.push(now));
    conn.onOpen(() => seen.push("open"));
    conn.on("greeting", (text) => seen.push(text));
    assert.deepEqual(
      [conn.connStatus, conn.isConnected, conn.connId],
      ["connecting", false, undefined],
    );
    const { ready } = conn;

    // Sent by `onConnect`, which runs before the connection is there.
    while (socket === undefined) await new Promise(setImmediate);
    socket.frame("Event", { name: "greeting", args: ["hi"] });
    socket.frame("Init", { actorId: "actor1", connectionId: "conn1" });
    await ready;

    assert.equal(conn.ready, ready);
    assert.deepEqual(seen, ["hi", "connected", "open"]);
    assert.deepEqual([conn.isConnected, conn.actorId, conn.connId], [true, "actor1", "conn1"]);
  });

  it("goes back to connecting when a server says nothing for 30 seconds", async () => {
    const conn = (await handleFor({ accept: (_, number) => number > 1 })).connect();
    while (server.sockets.length === 0) await new Promise(setImmediate);
    const lost = told(conn.onError);

    timers.advance(30_000);

    const [error] = await lost;
    assert.deepEqual([error.group, error.code], ["client", "connection_lost"]);
    timers.advance(250);
    await conn.ready;
  });
});

describe("a connection that the actor refuses", () => {
  it("is over: its calls and ready reject with the reason, and nothing is tried again", async () => {
    const handle = await handleFor({ accept: (socket) => refuse(socket, "auth", "forbidden") });
    const conn = handle.connect();
    const call = conn.ping();

    await assert.rejects(call, { group: "auth", code: "forbidden", message: "auth forbidden" });
    await assert.rejects(conn.ready, { code: "forbidden" });
    await assert.rejects(conn.ping(), { code: "forbidden" });
    assert.equal(conn.connStatus, "idle");
    assert.deepEqual(timers.waits(), []);
  });

  it("is named by its close alone, too", async () => {
    const handle = await handleFor({
      accept: (socket) => {
        socket.close(1011, "actor.not_found#ray9");
        return false;
      },
    });

    await assert.rejects(handle.connect().ready, {
      group: "actor",
      code: "not_found",
      rayId: "ray9",
    });
  });

  it("is tried again when the actor was on its way to another state", async () => {
    const conn = (
      await handleFor({
        accept: (socket, number) => number > 1 || refuse(socket, "actor", "stopping"),
      })
    ).connect();
    const call = conn.ping();
    await told(conn.onError);

    timers.advance(250);
    await conn.ready;

    const { id, name } = await server.sockets[1].next();
    assert.equal(name, "ping");
    server.sockets[1].frame("ActionResponse", { id, output: 1 });
    assert.equal(await call, 1);
  });
});

describe("a connection that is lost", () => {
  const connected = async (more) => {
    const conn = (await handleFor(more)).connect();
    await conn.ready;
    return conn;
  };

  it("rejects what was sent, with the reason of the close, and keeps what was not", async () => {
    const conn = await connected();
    const sent = conn.first();
    await server.sockets[0].next();
    const closed = told(conn.onClose);

    server.sockets[0].close(1011, "message.incoming_too_long");

    await assert.rejects(sent, { group: "message", code: "incoming_too_long" });
    await closed;
    const waiting = conn.second();
    timers.advance(250);
    await status(conn, "connected");
    const { name, id } = await server.sockets[1].next();
    assert.equal(name, "second");
    server.sockets[1].frame("ActionResponse", { id, output: "later" });
    assert.equal(await waiting, "later");
    assert.equal(conn.connId, "conn2");
  });

  it("subscribes again before it calls", async () => {
    const conn = await connected();
    conn.on("a", () => {});
    const remove = conn.on("b", () => {});
    conn.once("c", () => {});
    remove();
    server.sockets[0].terminate();
    await status(conn, "disconnected");
    void conn.ping().catch(() => {});

    timers.advance(250);
    await status(conn, "connected");

    const frames = [];
    for (let left = 3; left > 0; left -= 1) frames.push(await server.sockets[1].next());
    assert.deepEqual(
      frames.map(({ eventName, name }) => eventName ?? name),
      ["a", "c", "ping"],
    );
  });

  it("is opened again at once if it lasted, then after 250 ms, doubling to 30 s", async () => {
    const conn = await connected({
      accept: (socket, number) => {
        if (number === 1) return true;
        socket.terminate();
        return false;
      },
    });
    timers.advance(1_000);
    server.sockets[0].terminate();

    const waits = [];
    for (let left = 10; left > 0; left -= 1) {
      await status(conn, "disconnected");
      const [wait] = timers.waits();
      waits.push(wait);
      const again = status(conn, "connecting");
      timers.advance(wait);
      await again;
    }

    assert.deepEqual(waits, [0, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  });

  it("asks for its parameters anew, and tries again when that fails", async () => {
    const given = ["one", new Error("no session"), "two"];
    const getParams = async () => {
      const next = given.shift();
      if (next instanceof Error) throw next;
      return next;
    };
    const conn = await connected({ options: { getParams } });
    server.sockets[0].terminate();
    await status(conn, "disconnected");
    const failed = told(conn.onError);

    timers.advance(250);
    const [error] = await failed;
    assert.deepEqual([error.group, error.code], ["client", "get_params_failed"]);
    timers.advance(500);
    await status(conn, "connected");

    const params = server.sockets.map(({ offered }) => decodeURIComponent(offered[2]));
    assert.deepEqual(params, ['rivet_conn_params."one"', 'rivet_conn_params."two"']);
  });

  it("goes on trying though it is refused meanwhile, but lets no call wait for that", async () => {
    const conn = await connected({
      accept: (socket, number) => number !== 2 || refuse(socket, "auth", "forbidden"),
    });
    server.sockets[0].terminate();
    await status(conn, "disconnected");
    const waiting = conn.ping();

    timers.advance(250);

    await assert.rejects(waiting, { group: "auth", code: "forbidden" });
    timers.advance(500);
    await status(conn, "connected");
  });

  it("is lost, too, when the server says what is no message", async () => {
    const conn = await connected();
    const lost = told(conn.onError);

    server.sockets[0].raw(Buffer.from([0xff]));

    const [error] = await lost;
    assert.deepEqual([error.group, error.code], ["client", "malformed_response"]);
    assert.equal(conn.connStatus, "disconnected");
  });
});

describe("listeners", () => {
  it("hear an event as long as they are there, once() once", async () => {
    const conn = (await handleFor()).connect();
    await conn.ready;
    const [socket] = server.sockets;
    const heard = [];
    conn.once("tick", (n) => heard.push(`once ${n}`));
    const remove = conn.on("tick", (n) => {
      heard.push(`on ${n}`);
      if (n === 2) remove();
    });

    for (const n of [1, 2, 3]) socket.frame("Event", { name: "tick", args: [n] });
    await socket.next();
    const { subscribe } = await socket.next();

    assert.equal(subscribe, false);
    assert.deepEqual(heard, ["once 1", "on 1", "on 2"]);
  });

  it("that throw take nothing from the others, and are reported as uncaught", async () => {
    const conn = (await handleFor()).connect();
    await conn.ready;
    const own = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    const uncaught = once(process, "uncaughtException");
    conn.on("tick", () => {
      throw new Error("mine");
    });
    const heard = told((listener) => conn.on("tick", listener));

    server.sockets[0].frame("Event", { name: "tick", args: [] });

    await heard;
    const [error] = await uncaught;
    for (const listener of own) process.on("uncaughtException", listener);
    assert.equal(error.message, "mine");
  });

  it("are functions", async () => {
    const conn = (await handleFor()).connect();

    assert.throws(() => conn.on("tick", "x"), { code: "invalid_argument" });
    assert.throws(() => conn.onClose(), { code: "invalid_argument" });
  });
});

describe("dispose()", () => {
  it("closes with 1000, rejects what has no answer, and opens nothing again", async () => {
    const conn = (await handleFor()).connect();
    await conn.ready;
    const call = conn.ping();
    let closes = 0;
    conn.onClose(() => {
      closes += 1;
    });

    await conn.dispose();
    await conn.dispose();

    await assert.rejects(call, { group: "client", code: "disposed" });
    const [code, reason] = await server.sockets[0].closed;
    assert.deepEqual([code, String(reason)], [1000, "Disposed"]);
    assert.deepEqual([closes, conn.connStatus, timers.waits()], [1, "idle", []]);
    await assert.rejects(conn.ping(), { code: "disposed" });
  });

  it("of the client disposes all of its connections", async () => {
    const handle = await handleFor();
    const [one, two] = [handle.connect(), handle.connect()];
    await Promise.all([one.ready, two.ready]);

    await client.dispose();

    assert.deepEqual([one.connStatus, two.connStatus], ["idle", "idle"]);
  });

  it("before the socket is open leaves no socket behind", async () => {
    const conn = (await handleFor()).connect();

    await conn.dispose();

    await assert.rejects(conn.ready, { code: "disposed" });
    await new Promise(setImmediate);
    assert.deepEqual(server.sockets, []);
  });
});

describe("a call over a connection", () => {
  it("ends with its signal", async () => {
    const conn = (await handleFor()).connect();
    const ends = new AbortController();
    const call = conn.action({ name: "slow", signal: ends.signal });
    const reason = new Error("enough");

    ends.abort(reason);

    await assert.rejects(call, reason);
  });

  it("refuses arguments that cannot be sent", async () => {
    const conn = (await handleFor()).connect();

    await assert.rejects(conn.ping(Symbol("x")), {
      code: "invalid_argument",
      message: "Value at args[0] is a symbol",
    });
  });
});

describe("without a WebSocket", () => {
  it("a connection says what to pass", async () => {
    server = await gatewayDouble();
    const own = globalThis.WebSocket;
    globalThis.WebSocket = undefined;
    client = createClient(server.url);
    globalThis.WebSocket = own;

    await assert.rejects(client.room.get("a").connect().ready, {
      group: "client",
      code: "web_socket_missing",
      message: /pass one as createClient\(\{ webSocket \}\)/,
    });
  });
});

describe("webSocket() of a handle", () => {
  it("opens a socket to a path within the actor", async () => {
    const handle = await handleFor({ accept: () => false, options: { params: 1 } });

    const socket = await handle.webSocket("/files/x?a=1");
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    const message = new Promise((resolve) => socket.addEventListener("message", resolve));
    server.sockets[0].raw("hello");

    assert.equal((await message).data, "hello");
    const { pathname, searchParams } = new URL(server.sockets[0].url, "http://x");
    assert.equal(pathname, "/gateway/room/websocket/files/x");
    assert.equal(searchParams.get("a"), "1");
    assert.equal(socket.protocol, "rivet");
    socket.close();
  });
});
