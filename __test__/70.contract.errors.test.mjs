// Errors on both ways through the contract's classes, and what of them clients may read.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { BRIDGE_PREFIX } from "greenroom/native";

import { bridged, recordOf } from "./support/bridge.mjs";
import { typed } from "./support/contract.mjs";
import { actor, awake, none, opened } from "./support/native.mjs";

const target = actor("counter", "a");

/** What a callback throws, as programs written for the contract encode it. */
const encoded = (record) => new Error(BRIDGE_PREFIX + JSON.stringify(record));

/** A host with one type of actors, and an action that throws. */
async function throwing(t, thrown, callbacks = {}) {
  const actions = {
    act: async () => {
      throw thrown;
    },
  };
  return opened(t, { counter: typed({ actions, ...callbacks }) });
}

async function caught(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("expected an error");
}

describe("an error of SQLite", () => {
  for (const [what, sql, text] of [
    ["a missing table", "SELECT * FROM nope", "no such table: nope"],
    ["a broken rule", "INSERT INTO t VALUES (1)", "UNIQUE constraint failed: t.a"],
    ["a wrong word", "SELEC 1", 'near "SELEC": syntax error'],
    ["two statements", "SELECT 1; SELECT 2", "single statement"],
  ]) {
    it(`is internal, and keeps SQLite's own text: ${what}`, async (t) => {
      const host = await opened(t, { counter: typed() });
      const { context, identity } = await awake(host, target);
      const sql0 = context.sql();
      await sql0.exec("CREATE TABLE t (a UNIQUE); INSERT INTO t VALUES (1)");

      const ways = [
        () => sql0.execute(sql),
        () => sql0.executeBatch([{ sql }]),
        async () => {
          const transaction = await sql0.beginTransaction();
          try {
            await transaction.execute(sql);
          } finally {
            await transaction.rollback();
          }
        },
        async () => {
          const transaction = await context.beginStateTransaction();
          try {
            await transaction.execute(sql);
          } finally {
            await transaction.rollback();
          }
        },
      ];
      for (const way of ways) {
        const record = recordOf(await caught(way()));
        const { group, code, message, metadata, public: shown, statusCode, actor: by } = record;
        assert.deepEqual(
          { group, code, message, shown, statusCode },
          {
            group: "core",
            code: "internal_error",
            message: "An internal error occurred",
            shown: null,
            statusCode: null,
          },
        );
        assert.ok(metadata.error.includes(text), metadata.error);
        const { actorId, generation } = identity;
        assert.deepEqual(by, { actorId, generation, key: "a" });
      }
    });
  }
});

describe("what a callback throws", () => {
  const whole = {
    group: "app",
    code: "mine",
    message: "why",
    metadata: { n: 1 },
    public: true,
    statusCode: 418,
    rayId: "ray",
  };

  it("keeps all that it says, wherever in the text that is", async (t) => {
    for (const before of ["", "Error: ", "GenericFailure, "]) {
      const thrown = new Error(before + BRIDGE_PREFIX + JSON.stringify(whole));
      const host = await throwing(t, thrown);

      const error = await caught(host.submit(target, "act", none, 2));

      const { group, code, message, metadata, public: shown, statusCode, rayId } = error;
      const told = { group, code, message, metadata, public: shown, statusCode, rayId };
      assert.deepEqual(told, whole);
      assert.equal(error.actor.key, "a");
    }
  });

  it("is internal where that cannot be read, and keeps its text", async (t) => {
    for (const text of ["plain", `${BRIDGE_PREFIX}{"group":`, `${BRIDGE_PREFIX}{"group":1}`]) {
      const host = await throwing(t, new Error(text));

      const error = await caught(host.submit(target, "act", none, 2));

      assert.deepEqual([error.group, error.code], ["core", "internal_error"]);
      assert.equal(error.metadata.error, text);
    }
  });

  it("fails a start under its own name, with the phase beside it", async (t) => {
    const createState = async () => {
      throw encoded({ group: "user", code: "start", message: "no", public: true });
    };
    const host = await throwing(t, new Error("unused"), { createState });

    const error = await caught(host.submit(target, "get", none, 2));

    assert.deepEqual([error.group, error.code, error.message], ["user", "start", "no"]);
    assert.equal(error.actor.key, "a");
  });
});

describe("what a client reads of an error", () => {
  const cases = [
    ["of a user", { group: "user", code: "mine", message: "m", metadata: { a: 1 } }, "shown"],
    ["called public", { group: "app", code: "x", message: "m", public: true }, "shown"],
    ["of the code", { group: "rivetkit", code: "internal_error", message: "boom" }, "masked"],
    ["of another group", { group: "app", code: "x", message: "m", metadata: { a: 1 } }, "masked"],
    ["of a queue", { group: "queue", code: "full", message: "m", metadata: { limit: 1 } }, "shown"],
  ];
  for (const [what, record, how] of cases) {
    it(`${what} is ${how}, with its group and its code`, async (t) => {
      const host = await throwing(t, encoded(record));
      const { host: address, port } = await host.listen({ host: "127.0.0.1", port: 0 });
      await awake(host, target);
      const query = "rvt-namespace=default&rvt-method=get&rvt-key=a";

      const url = `http://${address}:${port}/gateway/counter/action/act?${query}`;
      const response = await fetch(url, { method: "POST", body: '{"args":[]}' });

      const { actor: by, ...body } = await response.json();
      const { group, code, message, metadata } = record;
      const shown = { group, code, message, ...(metadata && { metadata }) };
      const masked = { group, code, message: "An internal error occurred" };
      assert.deepEqual(without(body), how === "shown" ? shown : masked);
      assert.equal(by.key, "a");
      assert.match(response.headers.get("x-rivet-ray-id"), /^[\w-]{1,30}$/);
    });
  }
});

/** A body without the metadata that says nothing. */
function without(body) {
  const { metadata, ...rest } = body;
  return metadata === undefined || metadata === null ? rest : body;
}

describe("a message of a client", () => {
  it("is refused where it asks for what the contract's queues cannot do", async (t) => {
    const sent = [];
    const onQueueSend = async (_, { name, wait }) => {
      sent.push([name, wait]);
      return { status: "completed" };
    };
    const host = await opened(t, { counter: typed({ onQueueSend }) });
    const { host: address, port } = await host.listen({ host: "127.0.0.1", port: 0 });
    await awake(host, target);
    const query = "rvt-namespace=default&rvt-method=get&rvt-key=a";
    const url = `http://${address}:${port}/gateway/counter/queue/jobs?${query}`;
    const send = async (message) => {
      const response = await fetch(url, { method: "POST", body: JSON.stringify(message) });
      return response.json();
    };

    for (const [message, option] of [
      [{ body: 1, dedupeKey: "a" }, "dedupeKey"],
      [{ body: 1, delay: 5 }, "delay"],
    ]) {
      const { group, code, metadata } = await send(message);
      assert.deepEqual([group, code, metadata], ["queue", "option_not_supported", { option }]);
    }
    assert.deepEqual(await send({ body: 1, delay: 0 }), { status: "completed" });
    assert.deepEqual(sent, [["jobs", false]]);
  });
});

describe("work that is registered after the end", () => {
  it("is accepted and forgotten", async (t) => {
    const host = await opened(t, { counter: typed() });
    const { context, identity } = await awake(host, target);
    await host.sleep(identity.actorId);

    context.waitUntil(Promise.resolve());
    context.keepAwake(Promise.resolve());
    context.registerTask(Promise.resolve());

    assert.deepEqual([context.beginKeepAwake(), context.beginWebsocketCallback()], [0, 0]);
  });
});

describe("an argument that cannot be taken", () => {
  it("is named by its error, apart from the reason", async (t) => {
    const host = await opened(t, { counter: typed() });
    const { context } = await awake(host, target);
    const invalid = (argument) => (error) => {
      const { metadata, message } = recordOf(error);
      assert.equal(metadata.argument, argument);
      assert.equal(message, `Invalid native argument '${argument}': ${metadata.reason}`);
      return bridged("napi", "invalid_argument")(error);
    };
    const wrong = { kind: "date" };

    const sql = context.sql();
    await assert.rejects(sql.execute("SELECT ?", [wrong]), invalid("params"));
    await assert.rejects(sql.beginTransaction(0), invalid("timeoutMs"));
    await assert.rejects(sql.beginTransaction(Number.NaN), invalid("timeoutMs"));
    await assert.rejects(context.beginStateTransaction(-1), invalid("timeoutMs"));
    await assert.rejects(context.kv().listPrefix(none, { limit: -1 }), invalid("limit"));
    await assert.rejects(context.queue().nextBatch({ timeoutMs: -1 }), invalid("timeoutMs"));
  });
});
