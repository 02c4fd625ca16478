// The contract's JsActorStateTransaction, beside the author's layer.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor, awake, bytes, numbers, opened, text } from "./support/native.mjs";

/** The context of a running actor, outside of any call. */
async function contextOf(t) {
  const host = await opened(t, { counter: numbers() });
  const bag = await awake(host, actor("counter", "a"));
  await bag.context.sql().exec("CREATE TABLE t (a)");
  return { host, context: bag.context };
}

/** What a rejected promise says in the bridge form. */
async function refusal(promise) {
  const error = await promise.then(
    () => assert.fail("nothing was refused"),
    (error) => error,
  );
  const json = error.message.slice(error.message.indexOf("{"));
  const { group, code, message } = JSON.parse(json);
  return { is: `${group}.${code}`, message };
}

const blob = (length) => [{ kind: "blob", blobValue: new Uint8Array(length) }];

async function count(context) {
  return (await context.sql().query("SELECT count(*) FROM t")).rows[0][0];
}

describe("ActorContext#beginStateTransaction()", () => {
  it("refuses a timeout that is none", async (t) => {
    const { context } = await contextOf(t);
    for (const timeout of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      const { is } = await refusal(context.beginStateTransaction(timeout));
      assert.equal(is, "napi.invalid_argument");
    }
  });

  it("commits its statements together with the state", async (t) => {
    const { context } = await contextOf(t);
    const transaction = await context.beginStateTransaction();
    const params = [{ kind: "int", intValue: 7 }];
    await transaction.execute("INSERT INTO t VALUES (?)", params);
    const { rows } = await transaction.execute("SELECT a FROM t");
    assert.deepEqual(rows, [[7]]);
    const before = context.state();
    await transaction.commit({ state: bytes(42) });

    assert.notEqual(text(before), "42");
    assert.equal(text(context.state()), "42");
    assert.equal(await count(context), 1);
    await transaction.rollback();
    assert.equal(await count(context), 1);
    const finished = await refusal(transaction.execute("SELECT 1"));
    assert.match(finished.message, /already finalized/);
    assert.match((await refusal(transaction.commit({}))).message, /already finalized/);
  });

  it("leaves nothing of one that is rolled back, or that comes to its timeout", async (t) => {
    const { context } = await contextOf(t);
    const rolledBack = await context.beginStateTransaction();
    await rolledBack.execute("INSERT INTO t VALUES (1)");
    await rolledBack.rollback();
    await rolledBack.rollback();
    const expires = await context.beginStateTransaction(20);
    await expires.execute("INSERT INTO t VALUES (2)");
    await new Promise((resolve) => setTimeout(resolve, 60));

    const { is } = await refusal(expires.commit({ state: bytes(1) }));
    assert.equal(is, "sqlite.transaction_expired");
    assert.equal(await count(context), 0);
  });

  it("puts off the saves of others until it ends", async (t) => {
    const { context } = await contextOf(t);
    const transaction = await context.beginStateTransaction();
    let saved = false;
    const saving = context.saveState({ state: bytes(9) }).then(() => {
      saved = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(saved, false);
    await transaction.commit({ state: bytes(5) });
    await saving;

    assert.equal(text(context.state()), "9");
  });

  it("refuses what would end it, and what is beyond its budget", async (t) => {
    const { context } = await contextOf(t);
    const transaction = await context.beginStateTransaction();
    for (const sql of ["COMMIT", "/* c */ END", "ROLLBACK"]) {
      assert.match((await refusal(transaction.execute(sql))).message, /cannot end/);
    }
    await transaction.execute("SAVEPOINT s");
    await transaction.execute("ROLLBACK TO s");
    for (let at = 0; at < 126; at += 1) await transaction.execute("INSERT INTO t VALUES (1)");
    const tooMany = await refusal(transaction.commit({ state: bytes(1) }));
    assert.match(tooMany.message, /transaction budget/);
    const large = await context.beginStateTransaction();
    const tooLarge = await refusal(large.execute("INSERT INTO t VALUES (?)", blob(524_289)));
    assert.equal(tooLarge.is, "sqlite.transaction_too_large");
    await large.rollback();

    assert.equal(await count(context), 0);
  });

  it("waits for another one, and is refused once the actor stops", async (t) => {
    const { context } = await contextOf(t);
    const first = await context.beginStateTransaction();
    let began = false;
    const second = context.beginStateTransaction().then((transaction) => {
      began = true;
      return transaction;
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(began, false);
    await first.commit({});
    await (await second).rollback();

    context.sleep();
    const { is } = await refusal(
      (async () => {
        for (;;) {
          await (await context.beginStateTransaction()).rollback();
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      })(),
    );
    assert.match(is, /^actor\.(stopping|stopped)|^sqlite\.transaction_closed/);
  });
});
