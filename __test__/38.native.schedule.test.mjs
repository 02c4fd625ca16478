// The contract's Schedule, and the deadline of `run`.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor, awake, bytes, none, numbers, opened, text, until } from "./support/native.mjs";

const key = actor("it", "k");

/** An actor whose actions are given, awake, and its handle. */
async function started(t, actions = {}, callbacks = {}, config = {}) {
  const host = await opened(t, { it: numbers(actions, config, callbacks) });
  const bag = await awake(host, key);
  return { host, bag, schedule: bag.context.schedule() };
}

describe("the contract's Schedule", () => {
  it("refuses with errors in the form of the bridge, public, with their metadata", async (t) => {
    const { schedule } = await started(t);

    const error = await schedule.cronEvery("a", 10, "get", none).catch((caught) => caught);

    assert(error.message.startsWith("__RIVET_ERROR_JSON__:"), error.message);
    const {
      group,
      code,
      metadata,
      public: isPublic,
      statusCode,
    } = JSON.parse(error.message.slice("__RIVET_ERROR_JSON__:".length));
    assert.deepEqual(
      { group, code, metadata, isPublic, statusCode },
      {
        group: "schedule",
        code: "invalid_interval",
        metadata: { interval_ms: 10, minimum_ms: 5_000 },
        isPublic: true,
        statusCode: 400,
      },
    );
  });

  it("gives what is pending as the contract has it", async (t) => {
    const { schedule } = await started(t);
    const id = await schedule.at(9e12, "get", bytes("args"));
    await schedule.cronSet("c", "0 9 * * *", null, "get", bytes("c"));
    await schedule.cronEvery("e", 5_000, "get", none, 7);

    const event = await schedule.get(id);
    assert(Buffer.isBuffer(event.args));
    assert.deepEqual(
      { ...event, args: text(event.args) },
      {
        id,
        action: "get",
        args: "args",
        runAt: 9e12,
      },
    );
    assert.deepEqual(
      (await schedule.list()).map((each) => each.id),
      [id],
    );
    assert.equal(await schedule.get("none"), null);
    const cron = await schedule.cronGet("c");
    assert.deepEqual(
      [cron.kind, cron.expression, cron.timezone, cron.maxHistory, text(cron.args)],
      ["cron", "0 9 * * *", "UTC", 100, "c"],
    );
    const every = await schedule.cronGet("e");
    assert.deepEqual([every.kind, every.intervalMs, every.maxHistory], ["every", 5_000, 7]);
    assert.equal("lastRunAt" in every, false);
    assert.equal((await schedule.cronList()).length, 2);
    assert.equal(await schedule.cronGet("none"), null);
    assert.deepEqual(await schedule.cronHistory("c"), []);
    assert.deepEqual([await schedule.cancel(id), await schedule.cancel(id)], [true, false]);
    assert.deepEqual(
      [await schedule.cronDelete("c"), await schedule.cronDelete("c")],
      [true, false],
    );
  });

  it("fires with no connection and with why, and other calls without", async (t) => {
    const seen = [];
    const look = (_, args, { conn, scheduledFire, caller }) => {
      seen.push({ args, conn, scheduledFire, caller });
    };
    const { host, schedule } = await started(t, { look });
    const id = await schedule.after(0, "look", bytes("x"));
    await until(() => seen.length === 1, "it fired");
    await host.submit(key, "look", bytes("y"), 2);

    const { scheduledAt, firedAt, ...why } = seen[0].scheduledFire;
    assert(scheduledAt <= firedAt);
    assert.deepEqual(why, { kind: "at", id });
    assert.deepEqual([seen[0].args, seen[0].conn, seen[0].caller], ["x", null, 3]);
    assert.deepEqual([seen[1].args, seen[1].scheduledFire, seen[1].caller], ["y", undefined, 2]);
  });
});

describe("the deadline of run", () => {
  it("begins a run that has ended once more, and is consumed", async (t) => {
    let runs = 0;
    const run = async () => {
      runs += 1;
      return true;
    };
    const { bag } = await started(t, {}, { run });
    await until(() => runs === 1, "the start began it");

    await bag.context.setRunWakeAt(Date.now() + 5);
    await until(() => runs === 2, "the deadline began it again");
    await until(() => !bag.context.runHandlerActive(), "it ended");

    await new Promise((resolve) => setTimeout(resolve, 30));
    assert.equal(runs, 2);
  });

  it("comes once more when run answers false, unless it was set or cleared meanwhile", async (t) => {
    const answers = [true, false, false, true];
    let runs = 0;
    const run = async () => answers[runs++] ?? true;
    const { bag } = await started(t, {}, { run });
    await until(() => runs === 1, "the start began it");

    await bag.context.setRunWakeAt(Date.now());

    await until(() => runs === 4, "it came until run answered otherwise");
    await new Promise((resolve) => setTimeout(resolve, 30));
    assert.equal(runs, 4);
  });

  it("is cleared with null, and wakes an actor that sleeps", async (t) => {
    let runs = 0;
    const run = async () => {
      runs += 1;
      return true;
    };
    const { bag, host } = await started(t, {}, { run });
    await until(() => runs === 1, "the start began it");
    await bag.context.setRunWakeAt(Date.now() + 100_000);
    await bag.context.setRunWakeAt(null);
    await bag.context.setRunWakeAt(Date.now() + 50);
    bag.context.sleep();
    await until(() => bag.stopped !== undefined, "it sleeps");

    await until(() => host.live(key) !== undefined, "the deadline woke it");
    await until(() => runs === 2, "it runs");
  });
});
