// `rivetkit/client` as it is published, over HTTP: actors are found and called.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { ENCODINGS, plain, startServer } from "./support.mjs";

/** What every encoding brings both ways. */
const VALUES = {
  null: null,
  true: true,
  false: false,
  zero: 0,
  "a negative number": -7,
  "a fraction": 1.5,
  "the largest safe integer": Number.MAX_SAFE_INTEGER,
  "a number beyond 32 bits": 2 ** 40,
  "an empty text": "",
  "a text": '\u0000 \\ " ü \u2028 😀',
  "an empty list": [],
  "lists in lists": [1, [2, [3, []]]],
  "an empty object": {},
  "objects in objects": { a: { "b/c": [{ d: null }] }, ü: 1 },
  "a bigint": 5n,
  "a negative bigint": -5n,
  "a bigint beyond 64 bits": 2n ** 70n,
  bytes: new Uint8Array([0, 1, 255]),
  "no bytes": new Uint8Array(),
  "what looks like a tag": ["$x", 1],
};

/** What CBOR brings besides. In JSON the client sends an empty object for a set, and null for undefined. */
const BINARY_VALUES = {
  "a set": new Set([1, "a", 2n]),
  "undefined in an object": { a: undefined, b: 1 },
  "undefined among arguments": [1, undefined],
  "a date": new Date(1_500),
  "a map": new Map([["a", 1n]]),
  NaN: Number.NaN,
  infinity: Number.POSITIVE_INFINITY,
  "a Float64Array": new Float64Array([1.5, -2]),
};

for (const encoding of ENCODINGS) {
  describe(`rivetkit/client in ${encoding}`, () => {
    let server;
    let client;
    let handle;
    before(async () => {
      server = await startServer();
      client = server.client(encoding);
      handle = client.room.getOrCreate(["calls", encoding]);
    });
    after(() => server.close());

    describe("an actor", () => {
      it("is made by getOrCreate() with its input, once", async () => {
        const input = { topic: [1n, new Set([1])], bytes: new Uint8Array([1]) };
        const key = ["made", encoding];
        const first = client.room.getOrCreate(key, { createWithInput: input });
        assert.deepEqual(plain(await first.input()), input);
        const again = client.room.getOrCreate(key, { createWithInput: "other" });
        assert.deepEqual(plain(await again.input()), input);
        assert.equal(await again.resolve(), await first.resolve());
      });

      it("is made by create() with its input, and refused a key that is taken", async () => {
        const key = ["created", encoding];
        const made = await client.room.create(key, { input: new Set(["x"]) });
        assert.deepEqual(await made.input(), new Set(["x"]));
        assert.equal(await client.room.get(key).resolve(), await made.resolve());
        await assert.rejects(client.room.create(key), { group: "actor", code: "duplicate_key" });
      });

      it("gets input that no URL holds", async () => {
        const input = "x".repeat(50_000);
        const made = await client.room.create(["much", encoding], { input });
        assert.equal(await made.input(), input);
      });

      it("without input has undefined", async () => {
        const made = await client.room.create(["inputless", encoding]);
        assert.equal(await made.input(), undefined);
      });

      it("is found by its id, and by its key", async () => {
        const id = await handle.resolve();
        assert.deepEqual(await client.room.getForId(id).key(), ["calls", encoding]);
        assert.deepEqual(await client.room.get(["calls", encoding]).key(), ["calls", encoding]);
        assert.equal(await client.room.getForId(id).resolve(), id);
      });

      it("that is not there is not found by its id, nor by its key", async () => {
        const missing = client.room.getForId("00000000-0000-4000-8000-000000000000");
        await assert.rejects(missing.wakes(), { group: "actor", code: "not_found" });
        await assert.rejects(client.room.get(["never", encoding]).resolve(), {
          group: "actor",
          code: "not_found",
        });
        // The client asks 24 times for it before it gives up.
        await assert.rejects(client.room.get(["never", encoding]).wakes(), {
          group: "actor",
          code: "not_found",
        });
      });

      it("that is destroyed is not found any more, and is made anew", async () => {
        const key = ["destroyed", encoding];
        const handle = client.room.getOrCreate(key);
        const id = await handle.resolve();
        await handle.destroy();
        await assert.rejects(client.room.getForId(id).wakes(), {
          group: "actor",
          code: "not_found",
        });
        assert.notEqual(await client.room.getOrCreate(key).resolve(), id);
      });

      it("has the key that it was asked for, whatever is in it", async () => {
        for (const key of [
          [],
          "one",
          [encoding],
          ["tenant/with/slash", "room"],
          ["back\\slash", "\\0"],
          ["ü 😀", "a b+c%20&=?#@"],
          ["trailing\\"],
        ]) {
          const expected = typeof key === "string" ? [key] : key;
          assert.deepEqual(await client.room.getOrCreate(key).key(), expected);
          const made = await client.room.getOrCreate(key).resolve();
          assert.deepEqual(await client.room.getForId(made).key(), expected);
          assert.equal(await client.room.get(key).resolve(), made);
        }
      });

      it("may have an empty part, or a comma, in a key that is resolved first", async () => {
        // The client's query separates parts by commas, so it cannot say these itself.
        for (const key of [[""], ["", encoding], ["a,b", encoding]]) {
          const id = await client.room.getOrCreate(key).resolve();
          assert.deepEqual(await client.room.getForId(id).key(), key);
        }
      });

      it("is another for a part of its key", async () => {
        const whole = await client.room.getOrCreate(["x", encoding]).resolve();
        assert.notEqual(await client.room.getOrCreate(["x"]).resolve(), whole);
      });
    });

    describe("an action", () => {
      for (const [what, value] of Object.entries(VALUES)) {
        it(`takes and answers ${what}`, async () => {
          assert.deepEqual(plain(await handle.same(value)), value);
          assert.deepEqual(plain(await handle.echo(value, { value }, [value])), [
            value,
            { value },
            [value],
          ]);
        });
      }

      if (encoding !== "cbor") {
        // In CBOR the client sends this as what it would send for a bigint in JSON.
        it("takes and answers what looks like a bigint", async () => {
          assert.deepEqual(await handle.same(["$BigInt", "5"]), ["$BigInt", "5"]);
        });
      }

      if (encoding !== "json") {
        for (const [what, value] of Object.entries(BINARY_VALUES)) {
          it(`takes and answers ${what}`, async () => {
            assert.deepEqual(plain(await handle.same(value)), value);
          });
        }
      }

      it("answers undefined", async () => {
        assert.equal(await handle.nothing(), undefined);
      });

      it("gives the actor what the client passed, not how it travelled", async () => {
        assert.equal(await handle.kind(5n), "[object BigInt]");
        assert.equal(await handle.kind(new Uint8Array(1)), "[object Uint8Array]");
        assert.equal(await handle.kind(["$x", 1]), "[object Array]");
      });

      it("takes no arguments, and is reached in groups and by name", async () => {
        assert.deepEqual(await handle.echo(), []);
        assert.equal(await handle.action({ name: "group.add", args: [1, 2] }), 3);
        assert.equal(await handle.action({ name: "same", args: ["x"] }), "x");
      });

      it("takes up to 64 KiB, and answers up to 1 MiB", async () => {
        const text = "x".repeat(60_000);
        assert.equal(await handle.same(text), text);
        assert.equal((await handle.large(1_000_000)).length, 1_000_000);
        await assert.rejects(handle.same("x".repeat(70_000)), {
          group: "message",
          code: "incoming_too_long",
        });
        await assert.rejects(handle.large(1_100_000), {
          group: "message",
          code: "outgoing_too_long",
        });
      });

      it("runs beside others", async () => {
        const waits = handle.wait("waited");
        // Answered once the other one runs, and while it does.
        await handle.release();
        assert.equal(await waits, "waited");
      });

      it("ends for the client with its signal", async () => {
        const ends = new AbortController();
        const call = handle.action({ name: "wait", args: [1], signal: ends.signal });
        const rejected = assert.rejects(call, (error) => /abort/i.test(error.message));
        await handle.release({ answers: false });
        ends.abort();
        await rejected;
        assert.equal(await handle.same(1), 1);
      });
    });

    describe("an error", () => {
      it("of the author's arrives with code, message and metadata", async () => {
        await assert.rejects(handle.refuse(), (error) => {
          const { group, code, message, metadata } = error;
          assert.deepEqual([group, code, message], ["user", "full", "full"]);
          assert.deepEqual(metadata, { left: 0, big: 7n });
          return true;
        });
      });

      it("without a code has that of all such errors, and no metadata", async () => {
        await assert.rejects(handle.refusePlainly(), (error) => {
          assert.deepEqual([error.group, error.code], ["user", "user_error"]);
          assert.equal(error.message, "no reason");
          assert.equal(error.metadata ?? undefined, undefined);
          return true;
        });
      });

      it("that is not meant for clients is masked", async () => {
        await assert.rejects(handle.fail(), (error) => {
          assert.equal(error.code, "internal_error");
          assert.match(error.message, /internal error/i);
          assert.doesNotMatch(JSON.stringify(error) + error.stack, /secret/);
          return true;
        });
        assert.equal(await handle.same(1), 1);
      });

      it("says which action there is not", async () => {
        await assert.rejects(handle.missing(), { group: "actor", code: "action_not_found" });
      });

      it("says that arguments do not fit the schema", async () => {
        const typed = client.typed.getOrCreate("a", { params: { age: 3 } });
        assert.equal(await typed.grow(2), 5);
        await assert.rejects(typed.grow("two"), { group: "actor", code: "validation_error" });
      });
    });

    describe("parameters", () => {
      it("come with each call, and make a connection for it", async () => {
        const params = { name: "ada", at: "ü, (1)" };
        const ada = client.room.getOrCreate(["calls", encoding], { params });
        const one = await ada.who();
        const two = await ada.who();
        assert.deepEqual([one.name, one.calls, one.params], ["ada", 1, params]);
        assert.equal(two.calls, 1);
        assert.notEqual(one.id, two.id);
      });

      it("that a hook refuses reject the call as the hook threw", async () => {
        const key = ["calls", encoding];
        const eve = client.room.getOrCreate(key, { params: { name: "eve" } });
        await assert.rejects(eve.same(1), { group: "user", code: "unwanted", message: "not you" });
        const mallory = client.room.getOrCreate(key, { params: { name: "mallory" } });
        await assert.rejects(mallory.same(1), (error) => {
          assert.equal(error.code, "internal_error");
          assert.doesNotMatch(error.message, /secret/);
          return true;
        });
      });

      it("that do not fit the schema are refused", async () => {
        for (const params of [undefined, null, { age: "3" }]) {
          const typed = client.typed.getOrCreate("a", { params });
          await assert.rejects(typed.age(), { group: "actor", code: "validation_error" });
        }
      });
    });

    describe("a queue", () => {
      it("takes messages, and waits for their answers where that is asked for", async () => {
        assert.equal(await handle.send("jobs", { a: 1n }), undefined);
        const done = await handle.send("jobs", "work", { wait: true, timeout: 10_000 });
        assert.deepEqual(done, { status: "completed", response: { did: "work" } });
      });

      it("says when nobody answered in time", async () => {
        const done = await handle.send("slow", 1, { wait: true, timeout: 50 });
        assert.deepEqual(done, { status: "timedOut" });
      });

      it("is closed to those who may not publish", async () => {
        await assert.rejects(handle.send("private", 1), { group: "auth", code: "forbidden" });
      });
    });
  });
}
