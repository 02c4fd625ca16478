// `connect()`: connections as clients of the same process have them.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { deferred, inMemory, until } from "./support/registry.mjs";
import { heard, room } from "./support/room.mjs";

describe("a connection", () => {
  it("says how it is", async () => {
    const handle = inMemory({ room: room() }).client().room.getOrCreate("a");
    const conn = handle.connect();
    const told = [];
    conn.onStatusChange((status) => told.push(status));
    conn.onOpen(() => told.push("open"));
    conn.onClose(() => told.push("close"));
    const ended = conn.onClose(() => assert.fail("it was taken away"));
    ended();

    assert.deepEqual(
      [conn.connStatus, conn.isConnected, conn.connId, conn.actorId],
      ["connecting", false, undefined, undefined],
    );
    assert.equal(conn.ready, conn.ready);
    await conn.ready;
    assert.deepEqual([conn.connStatus, conn.isConnected], ["connected", true]);
    assert.equal(conn.actorId, await handle.resolve());
    await conn.dispose();
    await conn.dispose();

    assert.deepEqual(told, ["connected", "open", "idle", "close"]);
    await assert.rejects(conn.me(), { group: "client", code: "disposed" });
  });

  it("rejects what waits for it when it is disposed", async () => {
    const never = new Promise(() => {});
    const definition = room([], { onConnect: () => never });
    const conn = inMemory({ room: definition }).client().room.getOrCreate("a").connect();
    const calls = [conn.me(), conn.say(1)];
    await conn.dispose();

    for (const call of calls) await assert.rejects(call, { code: "disposed" });
    await assert.rejects(conn.ready, { code: "disposed" });
  });

  it("is opened again when the actor ended it, and hears what it heard", async () => {
    const notes = [];
    const handle = inMemory({ room: room(notes) })
      .client()
      .room.getOrCreate("a");
    const conn = handle.connect({ name: "ann" });
    const all = heard(conn);
    const errors = [];
    conn.onError((error) => errors.push([error.code, error.metadata]));
    await conn.ready;
    const before = conn.connId;

    assert.equal(await handle.kick(), 0);
    await conn.say("again");

    assert.notEqual(conn.connId, before);
    assert.deepEqual(all, [["again"]]);
    assert.deepEqual(errors, [["connection_lost", { code: 1000, reason: "out" }]]);
    assert.deepEqual(notes, [
      "onWake",
      "onBeforeConnect ann",
      "onConnect ann",
      "onDisconnect ann",
      "onBeforeConnect ann",
      "onConnect ann",
    ]);
  });

  it("calls groups of actions, by name, and sends to queues", async () => {
    const definition = actor({
      queues: { jobs: {} },
      actions: {
        math: { add: (_c, a, b) => a + b },
        onOpen: () => "hidden",
        take: async (c) => (await c.queue.next({ timeout: 1_000 }))?.body,
      },
    });
    const conn = inMemory({ definition }).client().definition.getOrCreate("a").connect();

    assert.equal(await conn.math.add(1, 2), 3);
    assert.equal(await conn.action({ name: "math.add", args: [2, 3] }), 5);
    assert.equal(await conn.action({ name: "onOpen", args: [] }), "hidden");
    await conn.send("jobs", { n: 1 });
    assert.deepEqual(await conn.take(), { n: 1 });
    await assert.rejects(conn.nothing(), { code: "action_not_found" });
  });

  it("gives a call up when its signal fires", async () => {
    const began = deferred();
    const ended = deferred();
    const definition = room([], {
      actions: {
        wait: async (c) => {
          began.resolve();
          await new Promise((resolve) => c.abortSignal.addEventListener("abort", resolve));
          ended.resolve();
        },
      },
    });
    const conn = inMemory({ room: definition }).client().room.getOrCreate("a").connect();
    const controller = new AbortController();
    const call = conn.action({ name: "wait", signal: controller.signal });
    await began.promise;
    controller.abort(new Error("enough"));

    await assert.rejects(call, { message: "enough" });
    await ended.promise;
  });

  it("asks getParams for each attempt, and tries again where that failed", async () => {
    let asked = 0;
    const getParams = async () => {
      asked += 1;
      if (asked === 1) throw new Error("no token");
      return { name: `user${asked}` };
    };
    const client = inMemory({ room: room() }).client();
    const conn = client.room.getOrCreate("a", { getParams }).connect();
    const errors = [];
    conn.onError((error) => errors.push(`${error.group}.${error.code}`));

    assert.deepEqual((await conn.me()).params, { name: "user2" });
    assert.deepEqual(errors, ["client.get_params_failed"]);
    const stateless = client.room.getOrCreate("a", { getParams });
    assert.deepEqual((await stateless.me()).params, { name: "user3" });
  });

  it("of an actor to another one is a client of it", async () => {
    const asker = actor({
      actions: {
        ask: async (c) => {
          const conn = c.client().room.getOrCreate("a").connect({ name: "asker" });
          try {
            return [await conn.me(), await conn.count(2)];
          } finally {
            await conn.dispose();
          }
        },
      },
    });
    const client = inMemory({ room: room(), asker }).client();

    const [me, count] = await client.asker.getOrCreate("a").ask();

    assert.deepEqual([me.caller, me.params, count], ["actor", { name: "asker" }, 2]);
  });

  it("does not reach internal actions, whoever has it", async () => {
    const own = actor({
      internalActions: { secret: () => "secret" },
      actions: {
        try: async (c) => {
          const names = ["secret", "\u0000secret"];
          const conn = c.client().own.getOrCreate("a").connect();
          const passing = c.client().own.getOrCreate("a", { params: 1 });
          const codes = [];
          for (const name of names) {
            for (const callee of [conn, passing]) {
              codes.push(await callee.action({ name }).catch((error) => error.code));
            }
          }
          await conn.dispose();
          return codes;
        },
      },
    });

    const codes = await inMemory({ own }).client().own.getOrCreate("b").try();

    assert.deepEqual(codes, Array(4).fill("action_not_found"));
  });

  it("ends with its registry", async () => {
    const registry = inMemory({ room: room() });
    const conn = registry.client().room.getOrCreate("a").connect();
    await conn.ready;
    await registry.shutdown();
    await until(() => conn.connStatus === "idle", "the end");

    await assert.rejects(conn.me(), { group: "registry", code: "shut_down" });
  });
});
