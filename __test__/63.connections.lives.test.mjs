// Connections over sleeps, crashes, restarts and transactions, on the manual clock.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { until } from "./support/registry.mjs";
import { heard, room } from "./support/room.mjs";
import { HOUR, runtime } from "./support/testing.mjs";

describe("a connection whose actor sleeps", () => {
  it("stays, with its state and what it hears, and runs no hook again", async (t) => {
    const notes = [];
    const rt = runtime(t, { room: room(notes) });
    const handle = rt.client.room.getOrCreate("a");
    const conn = handle.connect({ name: "ann" });
    const all = heard(conn);
    let opens = 0;
    conn.onOpen(() => {
      opens += 1;
    });
    await conn.count(2);
    const { connId } = conn;

    for (let n = 1; n <= 2; n += 1) {
      await rt.evict(handle);
      assert.deepEqual(await rt.awake(), []);
      assert.equal(conn.connStatus, "connected");
      assert.equal(await conn.count(1), 2 + n);
      await handle.say(n);
    }

    assert.deepEqual(all, [[1], [2]]);
    assert.deepEqual((await conn.me()).id, connId);
    assert.equal(opens, 1);
    assert.deepEqual(notes, ["onWake", "onBeforeConnect ann", "onConnect ann", "onWake", "onWake"]);
  });

  it("passes and hears the same values as before", async (t) => {
    const rt = runtime(t, { room: room() });
    const handle = rt.client.room.getOrCreate("a");
    const params = { name: "ann", big: 5n, pair: ["$x", 1], at: new Date(7), none: undefined };
    const conn = handle.connect(params);
    const all = heard(conn);
    await conn.ready;
    await rt.evict(handle);

    assert.deepEqual((await conn.me()).params, params);
    await handle.say(5n, ["$x", 1], new Map([[1, -0]]));
    await until(() => all.length === 1, "the event");
    assert.deepEqual(all, [[5n, ["$x", 1], new Map([[1, -0]])]]);
  });

  it("does not keep it awake", async (t) => {
    const rt = runtime(t, { room: room() });
    const conn = rt.client.room.getOrCreate("a").connect({ name: "ann" });
    await conn.ready;
    assert.equal((await rt.awake()).length, 1);

    await rt.clock.advance(HOUR);

    assert.deepEqual(await rt.awake(), []);
    assert.equal(await conn.count(1), 1);
  });

  it("and that is disposed meanwhile has its onDisconnect in the next generation, once", async (t) => {
    const notes = [];
    const rt = runtime(t, { room: room(notes) });
    const handle = rt.client.room.getOrCreate("a");
    const [ann, bob] = [handle.connect({ name: "ann" }), handle.connect({ name: "bob" })];
    await Promise.all([ann.ready, bob.ready]);
    await rt.evict(handle);
    notes.length = 0;

    await ann.dispose();

    assert.deepEqual(await rt.awake(), []);
    assert.deepEqual(await handle.names(), ["bob"]);
    await rt.clock.advance(0);
    assert.deepEqual(notes, ["onWake", "onDisconnect ann"]);
  });

  it("wakes it for a call that was made while it fell asleep", async (t) => {
    const rt = runtime(t, {
      room: room([], { onSleep: (c) => c.clock.sleep(100) }),
    });
    const handle = rt.client.room.getOrCreate("a");
    const conn = handle.connect({ name: "ann" });
    await conn.count(1);

    const asleep = rt.evict(handle);
    const call = conn.count(1);
    await asleep;

    assert.equal(await call, 2);
    assert.equal((await conn.me()).id, conn.connId);
  });

  for (const durability of ["reply", "interval"]) {
    it(`keeps what onConnect and timers changed of its state, with durability ${durability}`, async (t) => {
      const definition = room([], {
        options: { durability },
        onConnect: (_c, conn) => {
          conn.state.count = 10;
        },
        actions: {
          later(c) {
            const { conn } = c;
            setImmediate(() => {
              conn.state.count += 5;
            });
          },
        },
      });
      const rt = runtime(t, { room: definition });
      const handle = rt.client.room.getOrCreate("a");
      const conn = handle.connect({ name: "ann" });
      await conn.later();
      await new Promise((resolve) => setTimeout(resolve, 5));
      await rt.evict(handle);

      assert.equal(await conn.count(0), 15);
    });
  }
});

describe("a connection whose process ends", () => {
  for (const how of ["crash", "restart"]) {
    it(`by a ${how} is opened again as another one`, async (t) => {
      const notes = [];
      const rt = runtime(t, { room: room(notes) });
      const handle = rt.client.room.getOrCreate("a");
      const conn = handle.connect({ name: "ann" });
      const all = heard(conn);
      await conn.count(5);
      const { connId } = conn;

      await rt[how]();
      await conn.say("after");

      assert.notEqual(conn.connId, connId);
      assert.deepEqual(all, [["after"]]);
      assert.equal(await conn.count(0), 0);
      await rt.clock.advance(0);
      assert.equal(notes.filter((note) => note === "onDisconnect ann").length, 1);
      assert.deepEqual(await handle.names(), ["ann"]);
    });
  }

  it("by a crash rejects the calls that were on their way, and takes later ones", async (t) => {
    const rt = runtime(t, {
      room: room([], { actions: { wait: (c) => c.clock.sleep(1_000) } }),
    });
    const conn = rt.client.room.getOrCreate("a").connect();
    await conn.ready;
    const call = conn.wait();
    call.catch(() => {});
    await rt.clock.advance(0);

    await rt.crash();

    await assert.rejects(call, { group: "testing", code: "crashed" });
    assert.equal((await conn.me()).caller, "local");
  });
});

describe("a transaction", () => {
  const definition = room([], {
    actions: {
      change: (c, fails) =>
        c.transaction(async () => {
          c.conn.state.count += 1;
          await c.clock.sleep(10);
          c.conn.state.count += 1;
          if (fails) throw new Error("no");
        }),
      keep(c) {
        const state = c.conn.state;
        return c
          .transaction(async () => {
            state.count = 7;
            throw new Error("no");
          })
          .catch(() => {
            state.count = 8;
          });
      },
    },
  });

  it("that is rolled back gives connections their states back", async (t) => {
    const rt = runtime(t, { room: definition });
    const handle = rt.client.room.getOrCreate("a");
    const conn = handle.connect();
    await conn.count(3);

    const failed = conn.change(true);
    failed.catch(() => {});
    await rt.clock.advance(10);
    await assert.rejects(failed);
    assert.equal(await conn.count(0), 3);
    const done = conn.change(false);
    await rt.clock.advance(10);
    await done;
    await rt.evict(handle);

    assert.equal(await conn.count(0), 5);
  });

  it("that is rolled back lets nobody change the state that was", async (t) => {
    const rt = runtime(t, { room: definition });
    const conn = rt.client.room.getOrCreate("a").connect();

    await assert.rejects(conn.keep(), { group: "connection", code: "state_outdated" });
    assert.equal(await conn.count(0), 0);
  });
});

describe("a commit that fails", () => {
  it("takes the event along that told of its change", async (t) => {
    const rt = runtime(t, { room: room() });
    const conn = rt.client.room.getOrCreate("a").connect();
    const all = heard(conn);
    await conn.ready;

    await rt.failNextCommit();
    await assert.rejects(conn.say("lost"), { group: "storage" });
    await conn.say("kept");
    await until(() => all.length > 0, "an event");

    assert.deepEqual(all, [["kept"]]);
  });

  it("loses the state of a connection with the answer that told of it", async (t) => {
    const rt = runtime(t, { room: room() });
    const conn = rt.client.room.getOrCreate("a").connect();
    await conn.count(1);

    await rt.failNextCommit();
    await assert.rejects(conn.count(1), { group: "storage" });

    assert.equal(await conn.count(0), 1);
  });
});
