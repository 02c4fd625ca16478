// Who may send to the queues of RivetKit's actors, and hear their events.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, ENCODINGS, fresh, hears, told } from "./support.mjs";

const app = appOf("inspector");

for (const encoding of ENCODINGS) {
  describe(`access in ${encoding}`, () => {
    const locked = (role, key = fresh("locked")) =>
      app.client(encoding).locked.getOrCreate(key, { params: { role } });

    it("to a queue is for those whom canPublish lets, over HTTP and a connection", async () => {
      const forbidden = { group: "auth", code: "forbidden" };
      const wait = { wait: true, timeout: 5_000 };
      const done = { status: "completed", response: "done" };
      assert.deepEqual(await locked("guest").send("open", 1, wait), done);
      assert.deepEqual(await locked("admin").send("admin", 1, wait), done);
      await assert.rejects(locked("guest").send("admin", 1, wait), forbidden);
      await assert.rejects(locked("admin").send("shut", 1), forbidden);
      await assert.rejects(locked("guest").connect().send("admin", 1), forbidden);
    });

    it("to an event is for those whom canSubscribe lets, and others hear none", async () => {
      const key = fresh("locked");
      const admin = locked("admin", key).connect();
      const news = hears(admin, "news");
      await admin.tell("one");
      assert.deepEqual(await news.next(), ["one"]);
      const guest = locked("guest", key).connect();
      await guest.ready;
      const failed = told((f) => guest.onError(f), "an error");
      const heard = [];
      guest.on("news", (text) => heard.push(text));
      const [error] = await failed;
      assert.deepEqual([error.group, error.code], ["auth", "forbidden"]);
      await guest.dispose();
      await admin.tell("two");
      assert.deepEqual(await news.next(), ["two"]);
      assert.deepEqual(heard, []);
    });
  });
}
