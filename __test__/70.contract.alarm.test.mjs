// What the contract says of alarms, and what a crash leaves of them, on a clock that stands still.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { bridged } from "./support/bridge.mjs";
import { outcome, Still, still, typed } from "./support/contract.mjs";
import { actor, bytes, none } from "./support/native.mjs";

const target = actor("counter", "a");
const START = Date.UTC(2025, 0, 1);
const HOUR = 3_600_000;
const IDLE_MS = 30_000;

/** A type that notes when it starts and when its `run` begins. */
function noting(seen, clock, more = {}) {
  const note = (what) => async () => {
    seen.push([what, clock() - START]);
  };
  return typed({ onWake: note("wake"), run: note("run"), ...more });
}

/** A host with such a type, whose actor was called once. */
async function begun(t, more) {
  const seen = [];
  let stands;
  const type = noting(seen, () => stands?.trial.now ?? START, more);
  stands = await still(t, { counter: type });
  stands.type = type;
  const called = outcome(stands.host.submit(target, "get", none, 2));
  await stands.rest();
  assert.equal(called.state, "done", String(called.error));
  seen.length = 0;
  return Object.assign(stands, { seen, context: stands.host.live(target).context });
}

describe("setAlarm", () => {
  it("wakes an actor that sleeps, and has come where it is awake", async (t) => {
    const stands = await begun(t);
    stands.context.setAlarm(START + 1_000);
    await stands.pass(2_000);
    assert.deepEqual(stands.seen, []);
    stands.context.setAlarm(START + HOUR);
    await stands.pass(IDLE_MS);
    assert.equal(stands.host.live(target), undefined);

    await stands.pass(HOUR);

    assert.deepEqual(stands.seen, [
      ["wake", HOUR],
      ["run", HOUR],
    ]);
    // Once.
    await stands.pass(10 * HOUR);
    assert.equal(stands.seen.length, 2);
  });

  it("is beside setRunWakeAt: each is cleared by itself, and the earlier one comes first", async (t) => {
    const stands = await begun(t);
    const set = outcome(stands.context.setRunWakeAt(START + 2 * HOUR));
    stands.context.setAlarm(START + HOUR);
    stands.context.setAlarm(null);
    await stands.pass(IDLE_MS);
    await stands.pass(2 * HOUR);
    assert.equal(set.state, "done");
    assert.deepEqual(stands.seen, [
      ["wake", 2 * HOUR],
      ["run", 2 * HOUR],
    ]);

    stands.seen.length = 0;
    const again = outcome(stands.host.submit(target, "get", none, 2));
    await stands.rest();
    assert.equal(again.state, "done");
    stands.seen.length = 0;
    const { context } = stands.host.live(target);
    context.setAlarm(START + 3 * HOUR);
    const later = outcome(context.setRunWakeAt(START + 4 * HOUR));
    await stands.rest();
    const cleared = outcome(context.setRunWakeAt(null));
    await stands.pass(HOUR);

    assert.deepEqual([later.state, cleared.state], ["done", "done"]);
    assert.deepEqual(stands.seen[0], ["wake", 3 * HOUR]);
    await stands.pass(3 * HOUR);
    assert.equal(stands.seen.length, 2);
  });

  it("outlives a generation that was woken by something else, and a crash", async (t) => {
    const stands = await begun(t);
    stands.context.setAlarm(START + HOUR);
    await stands.pass(IDLE_MS);
    const between = outcome(stands.host.submit(target, "get", none, 2));
    await stands.pass(IDLE_MS);
    assert.equal(between.state, "done");
    assert.equal(stands.host.live(target), undefined);
    stands.seen.length = 0;
    const next = await crashed(stands);

    await next.pass(HOUR);

    assert.deepEqual(stands.seen, [
      ["wake", HOUR],
      ["run", HOUR],
    ]);
  });

  it("takes no moment that is none", async (t) => {
    const stands = await begun(t);

    assert.throws(
      () => stands.context.setAlarm(Number.NaN),
      (error) => {
        assert.match(error.message, /^__RIVET_ERROR_JSON__:/);
        return true;
      },
    );
    const late = outcome(stands.context.setRunWakeAt(Number.NaN));
    await stands.rest();
    assert.equal(late.state, "failed");
    bridged("schedule", "invalid_time")(late.error);
  });
});

describe("a workflow that was flushed", () => {
  it("goes on after a crash with nobody calling, before it has said when", async (t) => {
    const stands = await begun(t);
    const flushed = outcome(
      stands.context.saveStateAndWorkflowBatch([{ key: bytes("k"), value: bytes("v") }]),
    );
    await stands.rest();
    assert.equal(flushed.state, "done", String(flushed.error));

    const next = await crashed(stands);
    await next.pass(0);

    assert.deepEqual(
      stands.seen.map(([what]) => what),
      ["wake", "run"],
    );
  });

  it("wakes nobody once its actor has fallen asleep in order", async (t) => {
    const stands = await begun(t);
    const flushed = outcome(
      stands.context.saveStateAndWorkflowBatch([{ key: bytes("k"), value: bytes("v") }]),
    );
    stands.context.setAlarm(START + HOUR);
    await stands.pass(IDLE_MS);
    assert.deepEqual([flushed.state, stands.host.live(target)], ["done", undefined]);

    const next = await crashed(stands);
    await next.pass(HOUR / 2);
    assert.deepEqual(stands.seen, []);
    await next.pass(HOUR / 2);

    assert.deepEqual(stands.seen[0], ["wake", HOUR]);
  });
});

/** Another host on what the one before has stored when it crashes. */
async function crashed(stands) {
  const gone = outcome(stands.trial.crash(stands.host));
  while (gone.state === "pending") await stands.rest();
  assert.equal(gone.state, "done", String(gone.error));
  const opening = outcome(stands.trial.openHost());
  while (opening.state === "pending") await stands.rest();
  assert.equal(opening.state, "done", String(opening.error));
  const host = opening.value;
  host.register("counter", stands.type);
  const next = new Still(stands.trial, host);
  stands.host = host;
  return next;
}
