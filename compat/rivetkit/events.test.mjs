// Events of RivetKit's actors: who hears them, in which order, and who may not, in every encoding.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, ENCODINGS, fresh, hears, told } from "./support.mjs";

const app = appOf("connections");

for (const encoding of ENCODINGS) {
  describe(`events in ${encoding}`, () => {
    const connect = (name, key = fresh("room")) =>
      app.client(encoding).room.getOrCreate(key, { params: { name } }).connect();

    it("are heard by all who listen, with all their arguments, before the answer", async () => {
      const key = fresh("room");
      const ada = connect("ada", key);
      const bob = connect("bob", key);
      const adas = hears(ada, "said");
      const bobs = hears(bob, "said");
      await Promise.all([ada.who(), bob.who()]);
      assert.equal(await ada.say("hello", { n: 1 }, [2]), "said");
      // Whether a welcome is heard depends on when the client's subscription arrives.
      const next = async (heard) => {
        const args = await heard.next();
        return String(args[0]).startsWith("welcome") ? heard.next() : args;
      };
      assert.deepEqual(await next(adas), ["hello", { n: 1 }, [2]]);
      assert.deepEqual(await next(bobs), ["hello", { n: 1 }, [2]]);
    });

    it("keep their order", async () => {
      const conn = connect("ada");
      const heard = [];
      conn.on("said", (value) => typeof value === "number" && heard.push(value));
      await conn.who();
      await conn.many(200);
      assert.deepEqual(
        heard,
        Array.from({ length: 200 }, (_, index) => index),
      );
    });

    it("sent to one connection are heard there alone", async () => {
      const key = fresh("room");
      const ada = connect("ada", key);
      const bob = connect("bob", key);
      const heard = [];
      bob.on("said", (text) => heard.push(text));
      const adas = hears(ada, "said");
      await Promise.all([ada.who(), bob.who()]);
      await ada.whisper("to ada");
      await ada.tell("bob", "to bob");
      let [text] = await adas.next();
      if (text.startsWith("welcome")) [text] = await adas.next();
      assert.equal(text, "to ada");
      await bob.who();
      assert.ok(heard.includes("to bob"));
      assert.ok(!heard.includes("to ada"));
    });

    it("are heard once by once(), and no more after off", async () => {
      const conn = connect("ada");
      const once = [];
      const on = [];
      conn.once("said", (text) => once.push(text));
      const off = conn.on("said", (text) => on.push(text));
      await conn.who();
      await conn.say("one");
      await conn.say("two");
      assert.equal(once.length, 1);
      assert.ok(on.includes("one") && on.includes("two"));
      off();
      await conn.say("three");
      assert.ok(!on.includes("three"));
    });

    it("are for those whom canSubscribe lets", async () => {
      const ada = connect("ada");
      const secrets = hears(ada, "secret");
      await ada.who();
      await ada.secret("psst");
      assert.deepEqual(await secrets.next(), ["psst"]);
      const bob = connect("bob");
      await bob.who();
      const failed = told((f) => bob.onError(f), "an error");
      bob.on("secret", () => {});
      const [error] = await failed;
      assert.deepEqual([error.group, error.code], ["auth", "forbidden"]);
      await bob.dispose();
    });

    it("are checked by their schema when they are sent", async () => {
      const handle = app
        .client(encoding)
        .guarded.getOrCreate(fresh("checked"), { params: { age: 1 } });
      const conn = handle.connect();
      const counted = hears(conn, "counted");
      await conn.age();
      await conn.count(7);
      assert.deepEqual(await counted.next(), [7]);
      await assert.rejects(conn.count("seven"), { group: "actor", code: "validation_error" });
    });
  });
}
