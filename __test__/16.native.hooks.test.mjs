// The author's functions as the contract calls them, and what they may throw.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { BRIDGE_PREFIX, RivetError, recordOf } from "greenroom/native";

import { actor, bytes, none, numbers, opened, text, until } from "./support/native.mjs";

describe("hooks", () => {
  it("come in order with what the contract hands them", async (t) => {
    const seen = [];
    const hook = (name) => (_, payload) => {
      seen.push([name, payload.input ? text(payload.input) : payload.input, payload.isNew]);
    };
    const callbacks = {
      onMigrate: hook("onMigrate"),
      createState(_, payload) {
        payload.bag.extension = { n: 1 };
        hook("createState")(_, payload);
        return bytes(1);
      },
      onCreate: hook("onCreate"),
      onWake: hook("onWake"),
      onBeforeActorStart: hook("onBeforeActorStart"),
      run: hook("run"),
      onSleep: hook("onSleep"),
    };
    const host = await opened(t, { counter: numbers({}, {}, callbacks) });
    const target = actor("counter", "a");
    const row = await host.ensure(target, "create", bytes("input"));

    await host.submit(target, "get", none, 2);
    await until(() => seen.length === 6);
    await host.sleep(row.id);
    await host.submit(target, "get", none, 2);
    await until(() => seen.length === 11);

    assert.deepEqual(seen, [
      ["onMigrate", null, true],
      ["createState", "input", false],
      ["onCreate", "input", false],
      ["onWake", null, false],
      ["onBeforeActorStart", null, false],
      ["run", undefined, undefined],
      ["onSleep", null, false],
      ["onMigrate", null, false],
      ["onWake", null, false],
      ["onBeforeActorStart", null, false],
      ["run", undefined, undefined],
    ]);
  });

  it("that fail fail the start, with the error, its actor and its phase", async (t) => {
    const callbacks = {
      onWake() {
        throw new RivetError("mine", "not_today", "no", { metadata: { why: 1 } });
      },
    };
    const host = await opened(t, { counter: numbers({}, {}, callbacks) });

    await assert.rejects(host.submit(actor("counter", "a"), "get", none, 2), (error) => {
      assert.deepEqual([error.group, error.code, error.message], ["mine", "not_today", "no"]);
      assert.deepEqual(error.metadata, { why: 1 });
      assert.equal(error.actor.key, "a");
      assert.equal(error.actor.phase, "on_wake");
      return true;
    });
  });
});

describe("what author code throws", () => {
  const internal = (detail) => ({
    group: "core",
    code: "internal_error",
    message: "An internal error occurred",
    metadata: { error: detail },
  });

  it("is internal with its text, unless it has the brand or is in the bridge form", () => {
    assert.deepEqual(recordOf(new TypeError("bad")), internal("TypeError: bad"));
    assert.deepEqual(recordOf(new Error("bad")), internal("bad"));
    assert.deepEqual(recordOf("text"), internal("text"));
    assert.deepEqual(recordOf(undefined), internal("undefined was thrown"));
    assert.deepEqual(recordOf(Symbol("s")), internal("Symbol(s) was thrown"));
    assert.deepEqual(
      recordOf({ group: "a", code: "b", message: "c" }),
      internal('an object was thrown: {"group":"a","code":"b","message":"c"}'),
    );

    const branded = {
      __type: "ActorError",
      group: "user",
      code: "mine",
      message: "m",
      public: true,
      statusCode: 418,
    };
    const record = recordOf(branded);
    assert.deepEqual(
      [record.group, record.code, record.public, record.statusCode],
      ["user", "mine", true, 418],
    );
    const wrapped = new Error(
      `Error: ${BRIDGE_PREFIX}${JSON.stringify({ group: "g", code: "c", message: "m" })}`,
    );
    assert.equal(recordOf(wrapped).group, "g");
  });

  it("in a bridge form that cannot be read is internal with its text", () => {
    for (const broken of [
      `${BRIDGE_PREFIX}{`,
      `${BRIDGE_PREFIX}{"group":1}`,
      `${BRIDGE_PREFIX}null`,
    ]) {
      assert.deepEqual(recordOf(new Error(broken)), internal(broken));
    }
  });

  it("keeps only what the other side accepts", () => {
    const odd = {
      __type: "RivetError",
      group: "g",
      code: "c",
      message: "m",
      statusCode: -1,
      rayId: 7,
      public: "yes",
      actor: { actorId: 1 },
    };

    assert.deepEqual(recordOf(odd), {
      group: "g",
      code: "c",
      message: "m",
      metadata: null,
      public: null,
      statusCode: null,
      rayId: null,
      actor: null,
    });
  });

  it("with metadata that cannot be written still arrives", async (t) => {
    const circular = {};
    circular.self = circular;
    const fail = () => {
      throw new RivetError("mine", "circular", "m", { metadata: circular });
    };
    const host = await opened(t, { counter: numbers({ fail }) });

    await assert.rejects(host.submit(actor("counter", "a"), "fail", none, 2), {
      group: "mine",
      code: "circular",
    });
  });

  it("reaches another caller with all that it says", async (t) => {
    const fail = () => {
      throw new RivetError("user", "mine", "m", {
        metadata: { a: [1] },
        public: true,
        statusCode: 418,
        rayId: "ray",
      });
    };
    const host = await opened(t, { counter: numbers({ fail }) });

    await assert.rejects(host.submit(actor("counter", "a"), "fail", none, 2), (error) => {
      assert.ok(error instanceof RivetError);
      assert.equal(error.name, "RivetError");
      const { group, code, message, metadata, statusCode, rayId } = error;
      assert.deepEqual(
        { group, code, message, metadata, public: error.public, statusCode, rayId },
        {
          group: "user",
          code: "mine",
          message: "m",
          metadata: { a: [1] },
          public: true,
          statusCode: 418,
          rayId: "ray",
        },
      );
      return true;
    });
  });
});
