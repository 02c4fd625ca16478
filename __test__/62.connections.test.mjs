// Connections of actors, with clients of the same process: hooks and states.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor, UserError } from "../dist/index.js";
import { inMemory, schema, until } from "./support/registry.mjs";
import { room } from "./support/room.mjs";

describe("the hooks of a connection", () => {
  it("run in their order, and the last one when the client goes", async () => {
    const notes = [];
    const handle = inMemory({ room: room(notes) })
      .client()
      .room.getOrCreate("a");

    const conn = handle.connect({ name: "ann" });
    await conn.ready;
    await conn.dispose();
    await until(() => notes.length === 4, "onDisconnect");

    assert.deepEqual(notes, ["onWake", "onBeforeConnect ann", "onConnect ann", "onDisconnect ann"]);
  });

  for (const hook of ["onBeforeConnect", "createConnState", "onConnect"]) {
    it(`refuse a client where ${hook} throws, and nobody else hears of it`, async () => {
      const notes = [];
      const cause = new UserError("not you", { code: "refused", metadata: { why: 1 } });
      const written = room().config[hook];
      const definition = room(notes, {
        [hook]: (c, given) => {
          if ((given?.params ?? given)?.name === "eve") throw cause;
          return written(c, given);
        },
      });
      const handle = inMemory({ room: definition }).client().room.getOrCreate("a");
      const ann = handle.connect({ name: "ann" });
      await ann.ready;

      const eve = handle.connect({ name: "eve" });
      const errors = [];
      eve.onError((error) => errors.push(error.code));

      await assert.rejects(eve.me(), (error) => {
        assert.deepEqual(
          [error.group, error.code, error.metadata],
          ["user", "refused", { why: 1 }],
        );
        assert.equal(error.cause, cause);
        return true;
      });
      await assert.rejects(eve.ready, { code: "refused" });
      assert.deepEqual([errors, eve.connStatus], [["refused"], "idle"]);
      assert.deepEqual(await handle.names(), ["ann"]);
      assert.ok(!notes.includes("onDisconnect eve"));
      await assert.rejects(eve.me(), { code: "refused" });
    });
  }

  it("see the connection among the others from onConnect on", async () => {
    const seen = {};
    const note = (name) => (c, given) => {
      seen[name] = [c.conns.size, given?.name ?? given?.params.name];
    };
    const definition = room([], {
      onBeforeConnect: note("before"),
      createConnState: note("create"),
      onConnect: (c, conn) => {
        note("connect")(c, conn);
        assert.equal(c.conn, conn);
        assert.equal(c.conns.get(conn.id), conn);
      },
      onDisconnect: note("disconnect"),
      connState: undefined,
    });
    const conn = inMemory({ room: definition })
      .client()
      .room.getOrCreate("a")
      .connect({ name: "b" });
    await conn.ready;
    await conn.dispose();
    await until(() => seen.disconnect !== undefined, "onDisconnect");

    assert.deepEqual(seen, {
      before: [0, "b"],
      create: [0, "b"],
      connect: [1, "b"],
      disconnect: [0, "b"],
    });
  });

  it("run once for each call of a handle with params, and never for one without", async () => {
    const notes = [];
    const client = inMemory({ room: room(notes) }).client();

    const me = await client.room.getOrCreate("a", { params: { name: "ann" } }).me();
    await client.room.getOrCreate("a", { params: { name: "bob" } }).say("x");
    const other = await client.room.getOrCreate("a").me();

    assert.deepEqual([me.params, me.caller, me.hibernates], [{ name: "ann" }, "local", false]);
    assert.deepEqual(other, {
      id: undefined,
      params: undefined,
      caller: "local",
      hibernates: undefined,
    });
    assert.deepEqual(notes, [
      "onWake",
      ...["ann", "bob"].flatMap((name) =>
        ["onBeforeConnect", "onConnect", "onDisconnect"].map((hook) => `${hook} ${name}`),
      ),
    ]);
  });

  it("tell the caller of a refused call what was thrown", async () => {
    const cause = new Error("no");
    const definition = room([], {
      onBeforeConnect: () => {
        throw cause;
      },
    });
    const handle = inMemory({ room: definition }).client().room.getOrCreate("a", { params: 1 });

    await assert.rejects(handle.me(), (error) => error.cause === cause);
  });

  it("take too long, and are given up with their name", async () => {
    const never = new Promise(() => {});
    const definition = room([], {
      onConnect: () => never,
      options: { onConnectTimeout: 20 },
    });
    const conn = inMemory({ room: definition }).client().room.getOrCreate("a").connect();

    await assert.rejects(conn.ready, {
      group: "actor",
      code: "callback_timed_out",
      metadata: { callback_name: "onConnect", duration_ms: 20 },
    });
  });

  it("are not asked for more clients than there may be", async () => {
    const definition = room([], { options: { maxConnections: 1 } });
    const handle = inMemory({ room: definition }).client().room.getOrCreate("a");
    await handle.connect().ready;

    await assert.rejects(handle.connect().ready, {
      group: "connection",
      code: "too_many",
      metadata: { limit: 1 },
    });
  });

  it("get what a schema makes of the parameters, which may take its time", async () => {
    const given = schema(async (value) => {
      if (typeof value?.name !== "string") throw new Error("no name");
      return { name: value.name.toUpperCase() };
    });
    const notes = [];
    const handle = inMemory({ room: room(notes, { connParamsSchema: given }) })
      .client()
      .room.getOrCreate("a");

    const me = await handle.connect({ name: "ann" }).me();

    assert.deepEqual(me.params, { name: "ANN" });
    assert.ok(notes.includes("onBeforeConnect ANN"));
    await assert.rejects(handle.connect({ name: 5 }).ready, {
      group: "actor",
      code: "validation_error",
      message: "Invalid connection params",
    });
  });

  it("copy a constant state for each connection", async () => {
    const definition = actor({
      connState: { list: [] },
      actions: {
        push(c) {
          c.conn.state.list.push(1);
          return c.conn.state.list.length;
        },
      },
    });
    const handle = inMemory({ definition }).client().definition.getOrCreate("a");
    const [a, b] = [handle.connect(), handle.connect()];

    assert.deepEqual([await a.push(), await a.push(), await b.push()], [1, 2, 1]);
  });
});

describe("the state of a connection", () => {
  it("is its own", async () => {
    const handle = inMemory({ room: room() }).client().room.getOrCreate("a");
    const [ann, bob] = [handle.connect({ name: "ann" }), handle.connect({ name: "bob" })];

    await Promise.all([ann.count(5), bob.count(10)]);

    assert.deepEqual([await ann.count(0), await bob.count(0)], [5, 10]);
    assert.notEqual((await ann.me()).id, (await bob.me()).id);
  });

  it("refuses what cannot be stored, with its path", async () => {
    const definition = room([], {
      actions: {
        wrong: (c) => {
          c.conn.state.f = () => {};
        },
        replace: (c) => {
          c.conn.state = { deep: [Symbol()] };
        },
      },
    });
    const conn = inMemory({ room: definition }).client().room.getOrCreate("a").connect();

    await assert.rejects(conn.wrong(), (error) => {
      assert.match(String(error.cause?.message), /^Value at conn\.state\.f is a function$/);
      return true;
    });
    await assert.rejects(conn.replace(), (error) => {
      assert.match(String(error.cause?.message), /^Value at conn\.state\.deep\[0\] is a symbol$/);
      return true;
    });
  });

  it("is noticed at any depth, in parts that cannot be watched, too", async () => {
    const definition = room([], {
      createConnState: () => ({ deep: { list: [] }, map: new Map(), at: new Date(0) }),
      onConnect: undefined,
      onDisconnect: undefined,
      actions: {
        change(c) {
          c.conn.state.deep.list.push({ n: 1 });
          c.conn.state.map.set("a", 1);
          c.conn.state.at.setTime(7);
        },
        read: (c) => {
          const { deep, map, at } = c.conn.state;
          return [deep.list, [...map], at.getTime()];
        },
      },
    });
    const conn = inMemory({ room: definition }).client().room.getOrCreate("a").connect();
    await conn.change();
    globalThis.gc?.();

    assert.deepEqual(await conn.read(), [[{ n: 1 }], [["a", 1]], 7]);
  });

  it("is not there where the actor says nothing of one", async () => {
    const definition = actor({ actions: { read: (c) => c.conn.state } });
    const conn = inMemory({ definition }).client().definition.getOrCreate("a").connect();

    await assert.rejects(conn.read(), { group: "connection", code: "state_not_enabled" });
  });
});

describe("c.conns", () => {
  it("is a map of those that are there", async () => {
    const definition = room([], {
      actions: {
        look(c) {
          const conns = c.conns;
          const ids = [...conns.keys()];
          const each = [];
          conns.forEach((conn, id) => {
            each.push([id, conn.state.name]);
          });
          return {
            size: conns.size,
            sorted: ids.every((id, at) => at === 0 || ids[at - 1] < id),
            has: ids.map((id) => conns.has(id)),
            none: [conns.get("none"), conns.has("none")],
            same: [...conns].every(([id, conn]) => conns.get(id) === conn && conn.id === id),
            names: each.map(([, name]) => name).sort(),
          };
        },
      },
    });
    const handle = inMemory({ room: definition }).client().room.getOrCreate("a");
    await Promise.all(["a", "b", "c"].map((name) => handle.connect({ name }).ready));

    assert.deepEqual(await handle.look(), {
      size: 3,
      sorted: true,
      has: [true, true, true],
      none: [undefined, false],
      same: true,
      names: ["a", "b", "c"],
    });
  });
});
