// Connections to RivetKit's actors: their hooks, their state, and their end, in every encoding.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, ENCODINGS, fresh, told, until } from "./support.mjs";

const app = appOf("connections");

for (const encoding of ENCODINGS) {
  const room = (name, key = fresh("room")) =>
    app.client(encoding).room.getOrCreate(key, { params: { name } });

  describe(`a connection in ${encoding}`, () => {
    it("has an id, its params, and a state of its own that stays", async () => {
      const conn = room("ada").connect();
      const first = await conn.who();
      assert.deepEqual(first, { name: "ada", calls: 1, params: { name: "ada" }, id: conn.connId });
      assert.equal((await conn.who()).calls, 2);
      assert.equal(conn.connStatus, "connected");
      assert.equal(typeof conn.actorId, "string");
    });

    it("of an action over HTTP lives for that action", async () => {
      const handle = room("ada");
      assert.equal((await handle.who()).calls, 1);
      assert.equal((await handle.who()).calls, 1);
      await until(async () => (await handle.left()).length >= 3, "they are gone");
      assert.ok((await handle.left()).every(([name, there]) => name === "ada" && !there));
    });

    it("is among the others while it is open, and its end is told", async () => {
      const key = fresh("room");
      const ada = room("ada", key).connect();
      const bob = room("bob", key).connect();
      await Promise.all([ada.ready, bob.ready]);
      assert.deepEqual(await ada.names(), ["ada", "bob"]);
      await bob.dispose();
      await until(async () => (await ada.names()).length === 1, "bob is gone");
      assert.deepEqual(await ada.left(), [["bob", false]]);
      assert.deepEqual((await ada.joined()).sort(), ["ada", "bob"]);
    });

    it("is refused by onBeforeConnect, over HTTP too", async () => {
      const unwanted = { group: "user", code: "unwanted", message: "not you" };
      await assert.rejects(room("eve").who(), unwanted);
      const conn = room("eve").connect();
      const [error] = await told((f) => conn.onError(f), "an error");
      assert.equal(error.code, "unwanted");
      assert.deepEqual(error.metadata, { name: "eve" });
      await conn.dispose();
      await assert.rejects(room("mallory").who(), { group: "rivetkit", code: "internal_error" });
    });

    it("whose hook takes too long is refused", async () => {
      const handle = app.client(encoding).hesitant.getOrCreate(fresh("hesitant"));
      await assert.rejects(handle.nothing(), { group: "actor", code: "callback_timed_out" });
    });

    it("is ended by its actor, by itself or from another", async () => {
      const key = fresh("room");
      const ada = room("ada", key).connect();
      const bob = room("bob", key).connect();
      await Promise.all([ada.ready, bob.ready]);
      const bobs = told((f) => bob.onClose(f), "bob's connection closes");
      await ada.kickOther("bob");
      await bobs;
      const adas = told((f) => ada.onClose(f), "ada's connection closes");
      ada.kick("room.closed").catch(() => {});
      await adas;
    });

    it("tells its status, and rejects what is asked after its end", async () => {
      const handle = room("ada");
      const conn = handle.connect();
      const statuses = [];
      conn.onStatusChange((status) => statuses.push(status));
      await conn.ready;
      await conn.dispose();
      await until(() => statuses.includes("connected"), "it was connected");
      await assert.rejects(conn.who());
    });

    it("given a constant as its state has a copy of its own", async () => {
      const handle = app.client(encoding).seat.getOrCreate(fresh("constant"));
      const one = handle.connect();
      const two = handle.connect();
      await one.push("a");
      assert.deepEqual(await one.list(), ["a"]);
      assert.deepEqual(await two.list(), []);
    });

    it("has params of its schema, or is refused", async () => {
      const { guarded } = app.client(encoding);
      const ok = guarded.getOrCreate(fresh("checked"), { params: { age: 36 } });
      assert.equal(await ok.age(), 36);
      assert.equal(await ok.connect().age(), 36);
      const bad = guarded.getOrCreate(fresh("checked"), { params: { age: "old" } });
      await assert.rejects(bad.age(), { group: "actor", code: "validation_error" });
    });

    it("may have params that are asked for when it connects", async () => {
      let asked = 0;
      const handle = app.client(encoding).room.getOrCreate(fresh("room"), {
        getParams: async () => ({ name: `n${++asked}` }),
      });
      assert.equal((await handle.connect().who()).name, "n1");
      assert.equal((await handle.connect().who()).name, "n2");
    });
  });
}

describe("connections", () => {
  it("many at once to one actor are all served", async () => {
    const key = fresh("many");
    const conns = Array.from({ length: 30 }, (_, index) =>
      app
        .client()
        .room.getOrCreate(key, { params: { name: `n${index}` } })
        .connect(),
    );
    await Promise.all(conns.map((conn) => conn.ready));
    assert.equal((await conns[0].names()).length, 30);
    await Promise.all(conns.map((conn) => conn.dispose()));
    const handle = app.client().room.getOrCreate(key, { params: { name: "last" } });
    await until(async () => (await handle.names()).length === 1, "they are gone");
  });
});
