// Actions of RivetKit's actors: what they take, give and throw, in every encoding.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";

import { appOf, ENCODINGS, fresh, plain, until } from "./support.mjs";

const VALUES = {
  null: null,
  booleans: [true, false],
  numbers: [0, -7, 1.5, Number.MAX_SAFE_INTEGER, 2 ** 40],
  texts: ["", '\u0000 \\ " ü \u2028 😀'],
  "nested values": { a: { "b/c": [{ d: null }, []] }, ü: {} },
  bigints: [5n, -5n, 2n ** 70n],
  bytes: new Uint8Array([0, 1, 255]),
};

/** RivetKit's server half refuses it in CBOR, which its client does not escape there. */
const TAG_VALUES = { "what looks like a tag": ["$x", 1] };

/** What CBOR brings besides. */
const BINARY_VALUES = {
  "a set": new Set([1, "a", 2n]),
  "undefined in an object": { a: undefined, b: 1 },
  "a date": new Date(1_500),
  "a map": new Map([["a", 1n]]),
};

const app = appOf("actions");

for (const encoding of ENCODINGS) {
  describe(`actions in ${encoding}`, () => {
    let handle;
    let conn;
    before(async () => {
      handle = app.client(encoding).calls.getOrCreate(fresh("calls"));
      conn = handle.connect();
      await conn.ready;
    });

    const values = {
      ...VALUES,
      ...(encoding === "json" ? {} : BINARY_VALUES),
      ...(encoding === "cbor" ? {} : TAG_VALUES),
    };
    for (const [what, value] of Object.entries(values)) {
      it(`give back ${what}, over HTTP and a connection`, async () => {
        assert.deepEqual(plain(await handle.same(value)), value);
        assert.deepEqual(plain(await conn.same(value)), value);
      });
    }

    it("give undefined where nothing is returned", async () => {
      assert.equal(await handle.nothing(), undefined);
      assert.equal(await conn.nothing(), undefined);
    });

    it("take any number of arguments, and may return later", async () => {
      assert.deepEqual(await handle.all(), []);
      assert.deepEqual(await handle.all(1, "b", null), [1, "b", null]);
      assert.equal(await conn.later("x"), "x");
    });

    it("are found in groups, by their dotted names too", async () => {
      assert.equal(await handle.group.twice(2), 4);
      assert.equal(await handle.group.deep.thrice(2), 6);
      assert.equal(await conn.group.deep.thrice(3), 9);
      assert.equal(await handle.action({ name: "group.twice", args: [5] }), 10);
    });

    it("bring a user's error with its code and metadata", async () => {
      const full = { group: "user", code: "full", message: "full", metadata: { left: 0 } };
      await assert.rejects(handle.refuse(), full);
      await assert.rejects(conn.refuse(), full);
      const plainly = { group: "user", code: "user_error", message: "no reason" };
      await assert.rejects(handle.refusePlainly(), plainly);
      await assert.rejects(conn.refusePlainly(), plainly);
    });

    it("hide what another error says", async () => {
      const hidden = { group: "rivetkit", code: "internal_error" };
      for (const call of [handle.fail, conn.fail, handle.throwText, conn.throwText]) {
        const error = await call().then(assert.fail, (thrown) => thrown);
        assert.deepEqual({ group: error.group, code: error.code }, hidden);
        assert.equal(error.message, "An internal error occurred");
        assert.doesNotMatch(JSON.stringify(error), /secret/);
      }
    });

    it("that do not exist are not found, and what cannot be encoded is an error", async () => {
      const missing = { group: "actor", code: "action_not_found" };
      await assert.rejects(handle.action({ name: "missing", args: [] }), missing);
      await assert.rejects(conn.action({ name: "missing", args: [] }), missing);
      await assert.rejects(handle.notCode(), { group: "rivetkit", code: "internal_error" });
    });

    it("of one actor see its state change after each other", async () => {
      const counter = app.client(encoding).calls.getOrCreate(fresh("counter"));
      const sums = await Promise.all(Array.from({ length: 20 }, () => counter.add(1)));
      assert.deepEqual(
        sums.sort((a, b) => a - b),
        Array.from({ length: 20 }, (_, index) => index + 1),
      );
    });

    it("are told who they are", async () => {
      const key = fresh("about");
      const about = app.client(encoding).calls.getOrCreate(key);
      assert.deepEqual(await about.about(), {
        id: await about.resolve(),
        name: "calls",
        key,
        region: "string",
        request: "undefined",
        conn: "string",
        aborted: false,
      });
    });

    it("that are too large are refused, and the connection goes on over HTTP", async () => {
      const out = { group: "message", code: "outgoing_too_long" };
      await assert.rejects(handle.large(1_100_000), out);
      assert.equal((await handle.large(1_000_000)).length, 1_000_000);
      await assert.rejects(handle.same("x".repeat(70_000)), {
        group: "message",
        code: "incoming_too_long",
      });
    });
  });
}

describe("an action's time", () => {
  it("ends at its limit, and its signal aborts", async () => {
    const handle = app.client().slow.getOrCreate(fresh("slow"));
    const late = { group: "actor", code: "action_timed_out" };
    await assert.rejects(handle.never(), late);
    await until(async () => (await handle.aborted()) === 1, "the signal aborted");
    const conn = handle.connect();
    await assert.rejects(conn.never(), late);
    await until(async () => (await conn.aborted()) === 2, "the signal aborted");
  });
});

describe("an action's arguments and answer", () => {
  it("are checked by their schema, and the answer goes through onBeforeActionResponse", async () => {
    const handle = app.client().checked.getOrCreate(fresh("checked"));
    assert.deepEqual(await handle.grow(1), { name: "grow", args: [1], output: 2 });
    assert.equal(await handle.plain(), "plain");
    const invalid = { group: "actor", code: "validation_error" };
    await assert.rejects(handle.grow("1"), invalid);
    await assert.rejects(handle.connect().grow("1"), invalid);
  });
});
