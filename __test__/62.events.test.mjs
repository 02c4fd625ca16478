// Events of actors, to clients of the same process.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { event } from "../dist/index.js";
import { deferred, inMemory, schema, until } from "./support/registry.mjs";
import { heard, room } from "./support/room.mjs";

describe("events", () => {
  it("reach those who subscribed, with all their arguments, until they do no more", async () => {
    const handle = inMemory({ room: room() }).client().room.getOrCreate("a");
    const conn = handle.connect();
    const all = [];
    const end = conn.on("said", (...args) => all.push(args));
    const once = [];
    conn.once("said", (arg) => once.push(arg));
    await conn.ready;

    await handle.say(5, new Date(7), 5n);
    await conn.say(8);
    end();
    await conn.say(9);

    assert.deepEqual(all, [[5, new Date(7), 5n], [8]]);
    assert.deepEqual(once, [5]);
  });

  it("of calls without a connection come in order", async () => {
    const handle = inMemory({ room: room() }).client().room.getOrCreate("a");
    const conn = handle.connect();
    const all = heard(conn);
    await conn.me();

    await Promise.all([1, 2, 3].map((n) => handle.say(n)));
    await until(() => all.length === 3, "the events");

    assert.deepEqual(all, [[1], [2], [3]]);
  });

  it("come before the answer of the action that made them", async () => {
    const conn = inMemory({ room: room() }).client().room.getOrCreate("a").connect();
    const all = heard(conn);
    await conn.ready;

    await conn.say("a").then(() => all.push("answer"));

    assert.deepEqual(all, [["a"], "answer"]);
  });

  it("that onConnect sends reach a listener that was there at once", async () => {
    const definition = room([], { onConnect: (_c, conn) => conn.send("said", conn.id) });
    const conn = inMemory({ room: definition }).client().room.getOrCreate("a").connect();
    const all = heard(conn);
    await conn.ready;
    await until(() => all.length === 1, "the event");

    assert.deepEqual(all, [[conn.connId]]);
  });

  it("to one client reach it alone, once", async () => {
    const handle = inMemory({ room: room() }).client().room.getOrCreate("a");
    const [ann, bob] = [handle.connect(), handle.connect()];
    const [toAnn, toBob] = [heard(ann), heard(bob)];
    await Promise.all([ann.ready, bob.ready]);

    await handle.sendTo(ann.connId, "psst");
    await Promise.all([ann.me(), bob.me()]);

    assert.deepEqual([toAnn, toBob], [[["psst"]], []]);
  });

  it("of a schema are checked when they are sent, and changed by it", async () => {
    const positive = schema((value) => {
      if (!(value > 0)) throw new Error("not positive");
      return value * 2;
    });
    const pair = schema(([a, b]) => [b, a]);
    const definition = room([], {
      events: { said: positive, pair: event({ schema: pair }) },
      actions: { both: (c, a, b) => c.broadcast("pair", a, b) },
    });
    const conn = inMemory({ room: definition }).client().room.getOrCreate("a").connect();
    const [said, pairs] = [heard(conn), heard(conn, "pair")];

    await assert.rejects(conn.say(-1), {
      group: "actor",
      code: "validation_error",
      message: "Invalid event `said` payload",
    });
    await conn.say(4);
    await conn.both(1, 2);

    assert.deepEqual([said, pairs], [[[8]], [[2, 1]]]);
  });

  it("keep their order where a schema takes its time, and come before the answer", async () => {
    const slow = schema(async (value) => {
      await new Promise((resolve) => setImmediate(resolve));
      return value;
    });
    const definition = room([], {
      events: { slow, said: event() },
      actions: {
        both: (c) => {
          c.broadcast("slow", 1);
          c.broadcast("said", 2);
        },
      },
    });
    const conn = inMemory({ room: definition }).client().room.getOrCreate("a").connect();
    const all = [];
    conn.on("slow", (n) => all.push(n));
    conn.on("said", (n) => all.push(n));

    await conn.both();

    assert.deepEqual(all, [1, 2]);
  });

  it("of which the actor refuses to tell cost the connection", async () => {
    const secret = event({ canSubscribe: (c) => c.conn.params?.admin === true });
    const odd = event({ canSubscribe: () => "yes" });
    const definition = room([], { events: { said: event(), secret, odd } });
    const handle = inMemory({ room: definition }).client().room.getOrCreate("a");
    const conn = handle.connect({ name: "eve" });
    const errors = [];
    conn.onError((error) => errors.push(`${error.group}.${error.code}`));
    await conn.ready;
    const before = conn.connId;

    conn.on("secret", () => assert.fail("it was refused"));
    await until(() => errors.length === 1, "the refusal");
    await conn.say("after");
    conn.on("odd", () => {});
    await until(() => errors.length === 2, "the fault");
    const admin = handle.connect({ name: "root", admin: true });
    const heardSecret = heard(admin, "secret");
    await admin.me();

    assert.deepEqual(errors, ["auth.forbidden", "rivetkit.internal_error"]);
    assert.notEqual((await conn.me()).id, before);
    assert.deepEqual(heardSecret, []);
    assert.equal(admin.connStatus, "connected");
  });

  it("wait for what was changed before them", async () => {
    const stored = deferred();
    const definition = room([], {
      actions: {
        change: async (c) => {
          c.state.said = 9;
          c.broadcast("said", c.state.said);
          await stored.promise;
          return "late";
        },
      },
    });
    const conn = inMemory({ room: definition }).client().room.getOrCreate("a").connect();
    const all = heard(conn);
    await conn.ready;
    const late = conn.change();
    await until(() => all.length === 1, "the event");
    stored.resolve();

    assert.deepEqual([all, await late], [[[9]], "late"]);
  });
});
