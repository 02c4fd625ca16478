// `rivetkit/client` as it is published, over `/connect`: events, calls, a cut wire, a sleeping actor.
// Run twice: with the platform's WebSocket, and with that of `ws`, which the client takes otherwise.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { cuttable, ENCODINGS, hears, plain, startServer, told, within } from "./support.mjs";

const platform = typeof WebSocket === "undefined" ? "ws" : "the platform's WebSocket";

/** Resolves when a connection that is open is so once more. */
const opensAgain = (conn) =>
  told(
    (listener) => conn.onStatusChange((status) => status === "connected" && listener()),
    "it opens again",
  );

for (const encoding of ENCODINGS) {
  describe(`a connection of rivetkit/client in ${encoding}, over ${platform}`, () => {
    let server;
    let client;
    before(async () => {
      server = await startServer();
      client = server.client(encoding);
    });
    after(() => server.close());

    /** A key of each test's own. */
    const handleFor = (name) => client.room.getOrCreate([name, encoding]);

    it("has parameters, a state of its own, and ids", async () => {
      const params = { name: "ada", at: "ü, 1 % + 😀", list: [1] };
      const conn = handleFor("state").connect(params);
      await within(conn.ready, "ready");
      const { id, calls, name, params: seen } = await conn.who();
      assert.deepEqual([calls, name, seen], [1, "ada", params]);
      assert.equal((await conn.who()).calls, 2);
      assert.equal(conn.connId, id);
      assert.equal(conn.actorId, await handleFor("state").resolve());
      const other = handleFor("state").connect({ name: "bob" });
      assert.equal((await other.who()).calls, 1);
      assert.deepEqual(await conn.names(), ["ada", "bob"]);
      await Promise.all([conn.dispose(), other.dispose()]);
    });

    it("calls before it is open, and many at once, answered as they end", async () => {
      const conn = handleFor("calls").connect();
      const waits = conn.wait("waited");
      const many = Array.from({ length: 200 }, (_, n) => conn.same(n));
      assert.deepEqual(
        await Promise.all(many),
        many.map((_, n) => n),
      );
      await conn.release();
      assert.equal(await waits, "waited");
      await conn.dispose();
    });

    it("brings values both ways, in calls and in events", async () => {
      const conn = handleFor("values").connect();
      const said = hears(conn);
      assert.deepEqual(await said.next(), ["welcome nobody"]);
      const values = [5n, new Uint8Array([1, 2]), ["$x", 1], { a: [1n, null] }, "ü"];
      // In JSON the client itself sends an empty object for a set.
      if (encoding !== "json") values.push(new Set([1]));
      assert.deepEqual(plain(await conn.echo(...values)), values);
      assert.equal(await conn.nothing(), undefined);
      await conn.say(...values);
      assert.deepEqual(plain(await said.next()), values);
      await conn.say();
      assert.deepEqual(await said.next(), []);
      await conn.dispose();
    });

    it("hears what onConnect sends, events of all who call, and those for itself alone", async () => {
      const handle = handleFor("events");
      const [ada, bob] = [handle.connect({ name: "ada" }), handle.connect({ name: "bob" })];
      const [first, second] = [hears(ada), hears(bob)];
      assert.deepEqual(await first.next(), ["welcome ada"]);
      assert.deepEqual(await second.next(), ["welcome bob"]);
      // A subscription stands once a call behind it is answered.
      await Promise.all([ada.wakes(), bob.wakes()]);
      await handle.say("over HTTP");
      await ada.say("over the connection", 2);
      for (const said of [first, second]) {
        assert.deepEqual(await said.next(), ["over HTTP"]);
        assert.deepEqual(await said.next(), ["over the connection", 2]);
      }
      await ada.whisper("to me");
      await bob.say("the last");
      assert.deepEqual(await first.next(), ["to me"]);
      assert.deepEqual(await first.next(), ["the last"]);
      assert.deepEqual(await second.next(), ["the last"]);
      await Promise.all([ada.dispose(), bob.dispose()]);
    });

    it("hears an event as often as it has listeners, once() once, and none after unsubscribing", async () => {
      const conn = handleFor("listeners").connect();
      const one = hears(conn);
      await one.next();
      const two = hears(conn);
      const once = [];
      conn.once("said", (...args) => once.push(args));
      await conn.say(1);
      assert.deepEqual([await one.next(), await two.next()], [[1], [1]]);
      two.off();
      await conn.say(2);
      assert.deepEqual(await one.next(), [2]);
      one.off();
      await conn.say(3);
      await conn.wakes();
      assert.deepEqual([once, one.left, two.left], [[[1]], 0, 0]);
      await conn.dispose();
    });

    it("is told when it opens and closes, once each", async () => {
      const handle = handleFor("told");
      const conn = handle.connect({ name: "ada" });
      const notes = [];
      conn.onStatusChange((status) => notes.push(status));
      conn.onOpen(() => notes.push("open"));
      conn.onClose(() => notes.push("close"));
      const { ready } = conn;
      assert.equal(conn.isConnected, false);
      await within(ready, "ready");
      assert.equal(conn.connStatus, "connected");
      await conn.dispose();
      assert.deepEqual(notes, ["connected", "open", "idle", "close"]);
      await assert.rejects(conn.same(1));
      const gone = async () => (await handle.gone()).length > 0;
      while (!(await gone())) await new Promise((resolve) => setTimeout(resolve, 5));
      assert.deepEqual(await handle.gone(), ["ada"]);
    });

    it("gets errors of its calls, and stays open", async () => {
      const conn = handleFor("errors").connect();
      await assert.rejects(conn.refuse(), (error) => {
        const { group, code, message, metadata } = error;
        assert.deepEqual([group, code, message], ["user", "full", "full"]);
        assert.deepEqual(metadata, { left: 0, big: 7n });
        return true;
      });
      await assert.rejects(conn.refusePlainly(), { group: "user", code: "user_error" });
      await assert.rejects(conn.fail(), (error) => {
        assert.equal(error.code, "internal_error");
        assert.doesNotMatch(error.message, /secret/);
        return true;
      });
      await assert.rejects(conn.missing(), { group: "actor", code: "action_not_found" });
      await assert.rejects(conn.large(1_100_000), { group: "message", code: "outgoing_too_long" });
      assert.equal((await conn.large(1_000_000)).length, 1_000_000);
      assert.equal(await conn.same(1), 1);
      assert.equal(conn.connStatus, "connected");
      await conn.dispose();
    });

    it("that sends too much is closed with all its calls, and opened again", async () => {
      const conn = handleFor("much").connect();
      await within(conn.ready, "ready");
      const never = conn.never();
      const much = conn.same("x".repeat(70_000));
      for (const call of [much, never]) {
        await assert.rejects(call, { group: "message", code: "incoming_too_long" });
      }
      assert.equal(await conn.same("x".repeat(60_000)).then((text) => text.length), 60_000);
      await conn.dispose();
    });

    it("is refused by hooks: its calls reject as they threw, and it is over", async () => {
      const eve = handleFor("refused").connect({ name: "eve" });
      const refusal = told((listener) => eve.onError(listener), "an error");
      await assert.rejects(eve.same(1), { group: "user", code: "unwanted" });
      const [error] = await refusal;
      assert.equal(error.code, "unwanted");
      const mallory = handleFor("refused").connect({ name: "mallory" });
      await assert.rejects(mallory.same(1), (error) => {
        assert.match(error.code, /internal_error/);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      });
      assert.deepEqual(await handleFor("refused").gone(), []);
    });

    it("with parameters that do not fit the schema is refused", async () => {
      const typed = client.typed.getOrCreate(["a"]);
      assert.equal(await typed.connect({ age: 3 }).age(), 3);
      await assert.rejects(typed.connect({ age: "3" }).age(), {
        group: "actor",
        code: "validation_error",
      });
    });

    it("to an actor that is not there is refused", async () => {
      const id = "00000000-0000-4000-8000-000000000000";
      await assert.rejects(client.room.getForId(id).connect().same(1), {
        group: "actor",
        code: "not_found",
      });
    });

    it("to an actor that is made later is opened then", async () => {
      const key = ["later", encoding];
      const conn = client.room.get(key).connect();
      const call = conn.key();
      // The client hears that there is none, and goes on trying by itself.
      await assert.rejects(client.room.get(key).resolve(), { code: "not_found" });
      await client.room.create(key);
      assert.deepEqual(await within(call, "the call"), key);
      await conn.dispose();
    });

    it("that is disposed before it is open leaves nothing behind", async () => {
      const handle = handleFor("hasty");
      const conn = handle.connect({ name: "hasty" });
      await conn.dispose();
      const stays = handle.connect({ name: "stays" });
      await stays.who();
      while ((await stays.names()).length > 1)
        await new Promise((resolve) => setTimeout(resolve, 5));
      assert.deepEqual(await stays.names(), ["stays"]);
      await stays.dispose();
    });

    it("shows its hooks the request that it came by", async () => {
      const conn = handleFor("asked").connect({ name: "ada" });
      const { url, method } = await conn.asked();
      assert.equal(method, "GET");
      assert.match(new URL(url).pathname, /^\/connect$/);
      assert.doesNotMatch(url, /rvt-|ada/);
      await conn.dispose();
    });

    it("hears a thousand events in order, beside calls", async () => {
      const handle = handleFor("thousand");
      const conn = handle.connect();
      const said = hears(conn);
      await said.next();
      await conn.wakes();
      const numbers = Array.from({ length: 1_000 }, (_, n) => n);
      const counts = await Promise.all(numbers.map((n) => conn.say(n)));
      assert.deepEqual(
        counts,
        numbers.map((n) => n + 1),
      );
      for (const n of numbers) assert.deepEqual(await said.next(), [n]);
      await conn.dispose();
    });

    it("within a server of the author's does the same", async () => {
      const far = server.client(encoding, { endpoint: server.attached });
      const conn = far.room.getOrCreate(["attached", encoding]).connect({ name: "ada" });
      const said = hears(conn);
      assert.deepEqual(await said.next(), ["welcome ada"]);
      assert.equal((await conn.who()).name, "ada");
      await conn.say("hello");
      assert.deepEqual(await said.next(), ["hello"]);
      assert.equal((await conn.large(1_000_000)).length, 1_000_000);
      await far.dispose();
    });

    it("does not wait for its actor where the client says so", async () => {
      const eager = server.client(encoding, { gateway: { skipReadyWait: true } });
      for (const handle of [
        eager.room.getOrCreate(["eager", encoding]),
        eager.room.getForId(await handleFor("eager").resolve()),
      ]) {
        assert.equal(await handle.same(1), 1);
        const conn = handle.connect();
        assert.equal(await conn.same(2), 2);
      }
      await eager.dispose();
    });

    it("is closed for an event that it may not hear", async () => {
      const conn = handleFor("secret").connect();
      await within(conn.ready, "ready");
      const reopened = opensAgain(conn);
      const refusal = told((listener) => conn.onError(listener), "an error");
      const heard = [];
      const off = conn.on("secret", (...args) => heard.push(args));
      // Behind the subscription: it would be heard if that stood.
      const tells = conn.tell().catch(() => {});
      const [error] = await refusal;
      assert.deepEqual([error.group, error.code], ["auth", "forbidden"]);
      off();
      // What is sent before the close has come is lost with it.
      await Promise.all([tells, reopened]);
      assert.equal(await conn.same(1), 1);
      assert.deepEqual(heard, []);
      await conn.dispose();
    });

    it("that the actor ends is opened again as another one", async () => {
      const conn = handleFor("kicked").connect({ name: "ada" });
      const { id } = await conn.who();
      const reopened = opensAgain(conn);
      conn.kick("room.closed").catch(() => {});
      await reopened;
      const { id: other, calls } = await conn.who();
      assert.notEqual(other, id);
      assert.equal(calls, 1);
      await conn.dispose();
    });

    it("asks for its parameters each time that it opens", async () => {
      const names = ["one", "two"];
      const wire = await cuttable(server.url);
      const far = server.client(encoding, { endpoint: wire.url });
      const getParams = async () => ({ name: names.shift() });
      const conn = far.room.getOrCreate(["asked", encoding], { getParams }).connect();
      assert.equal((await conn.who()).name, "one");
      const reopened = opensAgain(conn);
      wire.cut();
      await reopened;
      assert.equal((await conn.who()).name, "two");
      await far.dispose();
      wire.close();
    });

    it("whose wire is cut rejects what was sent, opens again, and hears the same events", async () => {
      const wire = await cuttable(server.url);
      const far = server.client(encoding, { endpoint: wire.url });
      const handle = handleFor("cut");
      const conn = far.room.getOrCreate(["cut", encoding]).connect({ name: "ada" });
      const said = hears(conn);
      assert.deepEqual(await said.next(), ["welcome ada"]);
      await conn.wakes();
      const lost = assert.rejects(conn.never());
      const closed = told((listener) => conn.onClose(listener), "it closes");
      wire.cut();
      await Promise.all([lost, closed]);
      assert.equal(await conn.same("again"), "again");
      assert.deepEqual(await said.next(), ["welcome ada"]);
      await handle.say("still there?");
      assert.deepEqual(await said.next(), ["still there?"]);
      await far.dispose();
      wire.close();
    });

    it("stays while its actor sleeps: its call wakes it, and it hears what others say then", async () => {
      const handle = handleFor("sleeps");
      const conn = handle.connect({ name: "ada" });
      const said = hears(conn);
      assert.deepEqual(await said.next(), ["welcome ada"]);
      const { id } = await conn.who();
      let changes = 0;
      conn.onStatusChange(() => {
        changes += 1;
      });
      const actorId = await handle.resolve();

      await server.sleep(actorId);
      assert.equal(await conn.wakes(), 2);
      await server.sleep(actorId);
      await handle.say("good morning");
      assert.deepEqual(await said.next(), ["good morning"]);
      const { calls, name, id: same } = await conn.who();

      assert.deepEqual([calls, name, same], [2, "ada", id]);
      assert.equal(await conn.wakes(), 3);
      assert.equal(changes, 0);
      assert.deepEqual(await handle.gone(), []);
      await conn.dispose();
    });

    it("has each call answered once, in order, whatever the actor is at", async () => {
      const conn = handleFor("order").connect();
      await within(conn.ready, "ready");
      const calls = [];
      for (let n = 1; n <= 60; n += 1) {
        calls.push(conn.say(n));
        if (n % 20 === 0) calls.push(conn.rest().then(() => undefined));
      }
      const counts = (await Promise.all(calls)).filter((count) => count !== undefined);
      assert.deepEqual(
        counts,
        Array.from({ length: 60 }, (_, n) => n + 1),
      );
      await conn.dispose();
    });

    it("that ends while its actor sleeps is told to the actor, once", async () => {
      const handle = handleFor("leaves");
      const [ada, bob] = [handle.connect({ name: "ada" }), handle.connect({ name: "bob" })];
      await Promise.all([ada.who(), bob.who()]);
      await server.sleep(await handle.resolve());
      await ada.dispose();
      while ((await bob.names()).length > 1) await new Promise((resolve) => setTimeout(resolve, 5));
      assert.deepEqual(await bob.gone(), ["ada"]);
      await bob.dispose();
    });

    it("sends to queues", async () => {
      const conn = handleFor("queues").connect();
      const said = hears(conn);
      await said.next();
      const done = await conn.send("jobs", "work", { wait: true, timeout: 10_000 });
      assert.deepEqual(done, { status: "completed", response: { did: "work" } });
      assert.deepEqual(await said.next(), ["work"]);
      await conn.dispose();
    });
  });
}
