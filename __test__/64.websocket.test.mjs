// Raw sockets: `onWebSocket` of an actor, and what its author does with them.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { actor, UserError } from "../dist/index.js";
import { inMemory, until } from "./support/registry.mjs";
import { openRaw } from "./support/socket.mjs";

/** Echoes what it hears, and does as it is told. */
function echo(notes, more = {}) {
  return actor({
    state: { heard: 0 },
    onBeforeConnect: (_c, params) => {
      if (params?.name === "eve") throw new UserError("not you", { code: "refused" });
    },
    createConnState: (_c, params) => ({ name: params?.name }),
    onDisconnect: (_c, conn) => void notes.push(`onDisconnect ${conn.state.name}`),
    onWebSocket(c, socket) {
      const { pathname, search } = new URL(c.request.url);
      const query = new URLSearchParams(search);
      notes.push([
        "open",
        c.conn.state.name,
        pathname,
        query.get("a"),
        c.caller,
        socket.readyState,
      ]);
      socket.addEventListener("message", ({ data, rivetMessageIndex }) => {
        c.state.heard += 1;
        if (data === "close") socket.close(4000, "as you wish");
        else if (data === "fail") throw new Error("a listener");
        else if (typeof data === "string") socket.send(`${rivetMessageIndex} ${data}`);
        else socket.send(new Uint8Array(data).reverse());
      });
      socket.onclose = ({ code, reason, wasClean }) => {
        notes.push(["close", code, reason, wasClean, socket.readyState]);
      };
    },
    ...more,
    actions: {
      heard: (c) => c.state.heard,
      kick: async (c) => {
        for (const conn of c.conns.values()) await conn.disconnect("out");
      },
      nap: (c) => c.sleep(),
      ...more.actions,
    },
  });
}

describe("a raw socket", () => {
  const notes = [];
  let registry;
  let url;
  before(async () => {
    const late = actor({
      async onWebSocket(_c, socket) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        socket.addEventListener("message", ({ data }) => socket.send(`late ${data}`));
      },
      actions: { ping: () => "pong" },
    });
    const failing = actor({
      onWebSocket: async () => {
        await null;
        throw new UserError("later", { code: "later" });
      },
      actions: { ping: () => "pong" },
    });
    const throwing = actor({
      onWebSocket: () => {
        throw new UserError("now", { code: "now" });
      },
      actions: { ping: () => "pong" },
    });
    const silent = actor({ actions: { ping: () => "pong" } });
    const kept = echo(notes, { options: { canHibernateWebSocket: true } });
    const chosen = echo(notes, {
      options: {
        canHibernateWebSocket: (request) => {
          const { pathname, searchParams } = new URL(request.url);
          if (searchParams.has("fails")) throw new UserError("no", { code: "no" });
          if (searchParams.has("wrong")) return "yes";
          return pathname === "/websocket/keep" && request.method === "GET";
        },
      },
    });
    registry = inMemory({ echo: echo(notes), late, failing, throwing, silent, kept, chosen });
    ({ url } = await registry.listen({ port: 0 }));
  });
  after(() => registry.shutdown());

  it("brings texts and bytes both ways, in order, with their numbers", async () => {
    const socket = await openRaw(url, "echo", ["a"], "deep/er?a=b", { name: "ann" });
    socket.send("one");
    socket.send(Buffer.from([1, 2, 3]));
    socket.send("three");

    assert.equal(await socket.next(), "1 one");
    assert.deepEqual(await socket.next(), Buffer.from([3, 2, 1]));
    assert.equal(await socket.next(), "3 three");
    assert.deepEqual(notes.at(-1), ["open", "ann", "/websocket/deep/er", "b", "client", 1]);
    socket.end();
  });

  it("that the client closes is heard of, and then its connection is gone", async () => {
    const socket = await openRaw(url, "echo", ["b"], "", { name: "bob" });
    socket.send("one");
    await socket.next();
    notes.length = 0;
    socket.close(4001, "bye");
    await until(() => notes.length === 2, "the ends");

    assert.deepEqual(notes, [["close", 4001, "bye", false, 3], "onDisconnect bob"]);
  });

  it("is closed by the author behind what was sent", async () => {
    const socket = await openRaw(url, "echo", ["c"]);
    socket.send("one");
    socket.send("close");

    assert.equal(await socket.next(), "1 one");
    assert.deepEqual(await socket.closed, { code: 4000, reason: "as you wish" });
  });

  it("is closed with its connection", async () => {
    const socket = await openRaw(url, "echo", ["d"], "", { name: "dan" });
    socket.send("one");
    await socket.next();
    notes.length = 0;
    await registry.client().echo.getOrCreate("d").kick();

    assert.deepEqual(await socket.closed, { code: 1000, reason: "out" });
    assert.deepEqual(notes, [["close", 1000, "", true, 3], "onDisconnect dan"]);
  });

  it("lives on when a listener throws", async () => {
    const socket = await openRaw(url, "echo", ["e"]);
    socket.send("fail");
    socket.send("two");

    assert.equal(await socket.next(), "2 two");
    socket.end();
  });

  it("is refused by the hooks of its connection", async () => {
    const socket = await openRaw(url, "echo", ["f"], "", { name: "eve" });
    const { code, reason } = await socket.closed;

    assert.equal(code, 1011);
    assert.match(reason, /^user\.refused(#|$)/);
  });

  it("keeps messages until an async onWebSocket listens", async () => {
    const socket = await openRaw(url, "late", []);
    socket.send("one");
    socket.send("two");

    assert.deepEqual([await socket.next(), await socket.next()], ["late one", "late two"]);
    socket.end();
  });

  it("is closed where onWebSocket fails, now or later", async () => {
    for (const [name, expected] of [
      ["throwing", /^user\.now(#|$)/],
      ["failing", /^user\.later(#|$)/],
    ]) {
      const { code, reason } = await (await openRaw(url, name, [])).closed;
      assert.equal(code, 1011);
      assert.match(reason, expected);
    }
  });

  it("stays open and silent where nobody handles it", async () => {
    const socket = await openRaw(url, "silent", []);
    socket.send("one");

    assert.equal(await registry.client().silent.getOrCreate().ping(), "pong");
    const soon = new Promise((resolve) => setTimeout(resolve, 20, "open"));
    assert.equal(await Promise.race([socket.closed, soon]), "open");
    socket.end();
  });

  it("is handed over again when its actor wakes, where it may outlive a sleep", async () => {
    const socket = await openRaw(url, "kept", [], "", { name: "kim" });
    socket.send("one");
    assert.equal(await socket.next(), "1 one");
    notes.length = 0;
    const handle = registry.client().kept.getOrCreate();
    await handle.nap();
    await until(async () => {
      const { actors } = await registry.list({ name: "kept" });
      return !actors[0].awake;
    }, "the actor to sleep");
    socket.send("two");

    assert.equal(await socket.next(), "2 two");
    assert.equal(await handle.heard(), 2);
    assert.deepEqual(
      notes.map(([what]) => what),
      ["open"],
    );
    socket.end();
  });

  it("outlives a sleep where the author's function says so of its request", async () => {
    const kept = await openRaw(url, "chosen", ["a"], "keep");
    const other = await openRaw(url, "chosen", ["a"], "other");
    for (const socket of [kept, other]) {
      socket.send("one");
      assert.equal(await socket.next(), "1 one");
    }

    await registry.actor(registry.client().chosen.get("a")).sleep();

    assert.deepEqual(await other.closed, { code: 1000, reason: "actor.stopping" });
    kept.send("two");
    assert.equal(await kept.next(), "2 two");
    kept.end();
  });

  it("is refused where that function throws or gives no boolean", async () => {
    const refused = await openRaw(url, "chosen", ["b"], "x?fails=1");
    const { code, reason } = await refused.closed;
    assert.equal(code, 1011);
    assert.match(reason, /^user\.no(#|$)/);
    const wrong = await openRaw(url, "chosen", ["b"], "x?wrong=1");
    assert.match((await wrong.closed).reason, /internal_error(#|$)/);
  });
});
