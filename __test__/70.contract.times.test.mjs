// What the contract says of time, on a clock that stands still.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { CancellationToken, RivetError } from "greenroom/native";

import { bridged } from "./support/bridge.mjs";
import { outcome, serializeState, still, typed } from "./support/contract.mjs";
import { actor, bytes, none, text } from "./support/native.mjs";

const target = actor("counter", "a");
const never = () => new Promise(() => {});

describe("a transaction", () => {
  it("ends by itself at its time, and says so to whoever uses it after that", async (t) => {
    const type = typed({ serializeState }, { noSleep: true });
    const stands = await still(t, { counter: type });
    const begun = outcome(stands.host.submit(target, "get", none, 2));
    await stands.rest();
    assert.equal(begun.state, "done");
    const sql = stands.host.live(target).context.sql();
    const opening = outcome(sql.beginTransaction(1_000));
    await stands.rest();
    const transaction = opening.value;
    const written = outcome(transaction.exec("CREATE TABLE t (n)"));
    await stands.pass(1_000);

    const late = outcome(transaction.execute("SELECT 1"));
    const after = outcome(sql.execute("SELECT count(*) FROM sqlite_master WHERE name = 't'"));
    await stands.rest();

    assert.equal(written.state, "done");
    bridged("sqlite", "transaction_expired")(late.error);
    assert.deepEqual(after.value?.rows, [[0]]);
  });
});

describe("a callback that takes too long", () => {
  for (const [name, ms] of [
    ["createState", 5_000],
    ["onCreate", 5_000],
    ["createVars", 5_000],
    ["onMigrate", 30_000],
    ["onWake", 30_000],
    ["onBeforeActorStart", 5_000],
  ]) {
    it(`fails the start: ${name}, after ${ms} ms without a setting`, async (t) => {
      const stands = await stillWith(t, { [name]: never });
      const call = outcome(stands.host.submit(target, "get", none, 2));

      await stands.pass(ms - 1);
      assert.equal(call.state, "pending");
      await stands.pass(1);

      assert.equal(call.state, "failed");
      assert.ok(call.error instanceof RivetError);
      const { group, code, message, metadata } = call.error;
      assert.deepEqual(
        { group, code, message, metadata },
        {
          group: "actor",
          code: "callback_timed_out",
          message: `callback \`${name}\` timed out after ${ms} ms`,
          metadata: { callback_name: name, duration_ms: ms },
        },
      );
    });
  }

  for (const name of ["onBeforeConnect", "createConnState", "onConnect"]) {
    it(`refuses the connection: ${name}`, async (t) => {
      const stands = await stillWith(t, { [name]: never });
      const call = outcome(stands.host.submitConnected(target, none, "get", none, 0));

      await stands.pass(5_000);

      assert.equal(call.error?.code, "callback_timed_out");
      assert.deepEqual(call.error.metadata, { callback_name: name, duration_ms: 5_000 });
    });
  }

  it("ends an action with a code of its own, and tells its token", async (t) => {
    let token;
    const act = (_, { cancelToken }) => {
      token = cancelToken;
      return never();
    };
    const stands = await stillWith(t, { actions: { act } });
    const call = outcome(stands.host.submit(target, "act", none, 2));

    await stands.pass(59_999);
    assert.ok(token instanceof CancellationToken);
    assert.deepEqual([call.state, token.aborted()], ["pending", false]);
    await stands.pass(1);

    assert.equal(token.aborted(), true);
    const { group, code, message, statusCode, public: shown } = call.error;
    assert.deepEqual(
      { group, code, message, statusCode, shown },
      {
        group: "actor",
        code: "action_timed_out",
        message: "Action timed out",
        statusCode: 408,
        shown: true,
      },
    );
  });
});

describe("an action", () => {
  it("of a schedule has no connection, and why it was called", async (t) => {
    const seen = [];
    const act = async (_, { conn, scheduledFire }) => void seen.push([conn, scheduledFire]);
    const stands = await stillWith(t, { actions: { act } });
    const bag = await stands.awake();
    const id = outcome(bag.context.schedule().after(10, "act", none));
    const named = outcome(bag.context.schedule().cronEvery("tick", 5_000, "act", none));
    await stands.pass(5_000);
    await bag.context.schedule().cronDelete("tick");

    const at = Date.UTC(2025, 0, 1);
    assert.deepEqual([id.state, named.state], ["done", "done"]);
    assert.deepEqual(seen, [
      [null, { kind: "at", id: id.value, scheduledAt: at + 10, firedAt: at + 10 }],
      [
        null,
        { kind: "every", id: "tick", name: "tick", scheduledAt: at + 5_000, firedAt: at + 5_000 },
      ],
    ]);
  });

  it("lets onBeforeActionResponse make its answer, which has a time of its own", async (t) => {
    const seen = [];
    const waits = (ms, value) => () =>
      new Promise((resolve) => {
        timers.push({ at: stands.trial.now + ms, resolve: () => resolve(value) });
      });
    const timers = [];
    const callbacks = {
      actions: { slow: waits(40_000, bytes("out")), fast: async () => bytes("out") },
      onBeforeActionResponse: async (_, { ctx, name, args, output }) => {
        seen.push([ctx.name(), name, text(args), text(output)]);
        if (text(args) === "never") await never();
        if (text(args) === "throw") throw new RivetError("user", "mine", "no");
        if (name === "slow") await waits(40_000)();
        return bytes("replaced");
      },
    };
    const stands = await stillWith(t, callbacks);
    await stands.awake();
    seen.length = 0;

    const slow = outcome(stands.host.submit(target, "slow", bytes("x"), 2));
    await stands.pass(40_000);
    for (const timer of timers.splice(0)) timer.resolve();
    await stands.pass(40_000);
    for (const timer of timers.splice(0)) timer.resolve();
    await stands.rest();
    const thrown = outcome(stands.host.submit(target, "fast", bytes("throw"), 2));
    const late = outcome(stands.host.submit(target, "fast", bytes("never"), 2));
    await stands.pass(60_000);

    assert.equal(slow.state, "done", String(slow.error));
    assert.equal(text(slow.value), "replaced");
    assert.deepEqual([thrown.error?.code, late.error?.code], ["mine", "action_timed_out"]);
    assert.deepEqual(seen[0], ["counter", "slow", "x", "out"]);
  });
});

/** What the contract has of fires: this runtime also counts attempts. */
const known = (fires) => fires?.map(({ attempt: _, ...fire }) => fire);

describe("the history of a job", () => {
  it("tells what became of its fires, the newest first", async (t) => {
    let fails = true;
    const act = async () => {
      if (fails) throw new RivetError("user", "mine", "no", { metadata: { a: 1 } });
    };
    const stands = await stillWith(t, { actions: { act } });
    const schedule = (await stands.awake()).context.schedule();
    const set = outcome(schedule.cronEvery("tick", 5_000, "act", none, 2));
    await stands.pass(5_000);
    fails = false;
    await stands.pass(10_000);
    const told = outcome(schedule.cronHistory("tick"));
    const one = outcome(schedule.cronHistory("tick", 1));
    await stands.rest();

    const start = Date.UTC(2025, 0, 1);
    const at = (ms) => ({ scheduledAt: start + ms, firedAt: start + ms, finishedAt: start + ms });
    assert.equal(set.state, "done");
    const ok = (ms) => ({ action: "act", ...at(ms), result: "ok" });
    assert.deepEqual(known(told.value), [ok(15_000), ok(10_000)]);
    assert.deepEqual(known(one.value), [ok(15_000)]);
    fails = true;
    await stands.pass(5_000);
    const failed = outcome(schedule.cronHistory("tick", 1));
    await stands.rest();
    const error = { group: "user", code: "mine", message: "no", metadata: { a: 1 } };
    const fire = { action: "act", ...at(20_000), result: "error", error };
    assert.deepEqual(known(failed.value), [fire]);
  });
});

/** A host whose clock stands still, with one type of actors that never sleeps. */
async function stillWith(t, callbacks) {
  const type = typed(
    { serializeState, createState: async () => bytes("first"), ...callbacks },
    { noSleep: true },
  );
  const stands = await still(t, { counter: type });
  stands.awake = async () => {
    const first = outcome(stands.host.submit(target, "get", none, 2));
    await stands.rest();
    assert.equal(first.state, "done", String(first.error));
    return stands.host.live(target);
  };
  return stands;
}
