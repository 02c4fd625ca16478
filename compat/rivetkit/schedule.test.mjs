// Schedules and recurring jobs of RivetKit's actors.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, fresh, until } from "./support.mjs";

const app = appOf("schedule");
const make = (key = fresh("clock")) => app.client().clock.getOrCreate(key);

describe("schedule", () => {
  it("fires once after its time, with its arguments and what it is", async () => {
    const handle = make();
    const id = await handle.after(50, "a", { b: 1n });
    await until(async () => (await handle.fired()).length === 1, "it fires");
    const [{ late, ...fired }] = await handle.fired();
    assert.deepEqual(fired, {
      args: ["a", { b: 1n }],
      kind: "at",
      name: undefined,
      id,
      conn: true,
    });
    assert.ok(late >= 0);
    assert.deepEqual(await handle.list(), []);
    assert.equal(await handle.get(id), undefined);
  });

  it("fires at a time, the earlier first", async () => {
    const handle = make();
    await handle.fired();
    const now = Date.now();
    await Promise.all([handle.at(now + 1_200, "late"), handle.at(now + 1_000, "early")]);
    await until(async () => (await handle.fired()).length === 2, "both fire");
    const order = (await handle.fired()).map(({ args }) => args[0]);
    assert.deepEqual(order, ["early", "late"]);
  });

  it("fires at once for a time that is over", async () => {
    const handle = make();
    await handle.at(Date.now() - 60_000, "over");
    await until(async () => (await handle.fired()).length === 1, "it fires");
  });

  it("lists what waits, and cancels it", async () => {
    const handle = make();
    const when = Date.now() + 600_000;
    const id = await handle.at(when, 1, "two");
    assert.deepEqual(await handle.get(id), { id, action: "fire", args: [1, "two"], runAt: when });
    const other = await handle.after(500_000);
    assert.deepEqual((await handle.list()).map((each) => each.id).sort(), [id, other].sort());
    assert.equal(await handle.cancel(id), true);
    assert.equal(await handle.cancel(id), false);
    assert.equal(await handle.get(id), undefined);
    assert.equal((await handle.list()).length, 1);
  });

  it("wakes an actor that sleeps", async () => {
    const key = fresh("clock");
    const handle = make(key);
    await handle.after(1_500, "woken");
    await handle.rest();
    await app.noted(key, "onSleep");
    await app.noted(key, "onWake", 2);
    await until(async () => (await handle.fired()).length === 1, "it fires");
  });

  it("has a limit", async () => {
    const handle = make();
    for (let index = 0; index < 5; index += 1) await handle.after(600_000);
    assert.equal(await handle.tryAfter(600_000), "max_schedules_exceeded");
  });

  it("of an action that does not exist fails by itself, and the others go on", async () => {
    const handle = make();
    await handle.afterMissing();
    await handle.after(100, "fine");
    await until(async () => (await handle.fired()).length === 1, "it fires");
  });
});

describe("cron", () => {
  it("keeps jobs by their names", async () => {
    const handle = make();
    await handle.set({
      name: "noon",
      expression: "0 12 * * *",
      action: "fire",
      args: ["x"],
      timezone: "Europe/Berlin",
    });
    await handle.every({ name: "often", interval: 5_000, action: "fire", maxHistory: 3 });
    const noon = await handle.job("noon");
    assert.equal(typeof noon.nextRunAt, "number");
    assert.ok(noon.nextRunAt > Date.now());
    const { nextRunAt, lastRunAt, ...rest } = noon;
    assert.equal(lastRunAt ?? undefined, undefined);
    assert.deepEqual(rest, {
      kind: "cron",
      name: "noon",
      action: "fire",
      args: ["x"],
      expression: "0 12 * * *",
      timezone: "Europe/Berlin",
      maxHistory: 100,
    });
    const often = await handle.job("often");
    assert.deepEqual([often.kind, often.interval, often.maxHistory], ["every", 5_000, 3]);
    assert.deepEqual((await handle.jobs()).map(({ name }) => name).sort(), ["noon", "often"]);
    await handle.set({ name: "noon", expression: "30 12 * * *", action: "fire" });
    assert.equal((await handle.job("noon")).expression, "30 12 * * *");
    assert.equal((await handle.jobs()).length, 2);
    assert.equal(await handle.remove("noon"), true);
    assert.equal(await handle.remove("noon"), false);
    assert.equal(await handle.job("noon"), undefined);
  });

  it("refuses what is no job, each with its code", async () => {
    const handle = make();
    const noon = { name: "x", expression: "0 12 * * *", action: "fire" };
    const often = { name: "x", interval: 5_000, action: "fire" };
    const set = (job) => handle.trySet({ ...noon, ...job });
    const every = (job) => handle.tryEvery({ ...often, ...job });
    assert.equal(await set({ expression: "nonsense" }), "invalid_cron_expression");
    assert.equal(await set({ expression: "0 0 12 * * *" }), "invalid_cron_expression");
    assert.equal(await set({ timezone: "Mars/Base" }), "invalid_timezone");
    assert.equal(await set({ name: "" }), "invalid_name");
    assert.equal(await every({ interval: 4_999 }), "invalid_interval");
    assert.equal(await every({ name: "" }), "invalid_name");
    assert.deepEqual(await handle.jobs(), []);
  });

  it("fires again and again, and remembers how it went, through a sleep", async () => {
    const key = fresh("clock");
    const handle = make(key);
    await handle.every({ name: "often", interval: 5_000, action: "fire", args: ["e"] });
    await handle.every({ name: "bad", interval: 5_000, action: "fail" });
    await handle.rest();
    await app.noted(key, "onSleep");
    await app.noted(key, "onWake", 2);
    await until(
      async () => (await handle.history("bad")).some(({ result }) => result === "error"),
      "it failed",
    );
    await until(
      async () => (await handle.history("often")).some(({ result }) => result === "ok"),
      "it went well",
    );
    const [{ args, kind, name, conn }] = await handle.fired();
    assert.deepEqual(
      { args, kind, name, conn },
      { args: ["e"], kind: "every", name: "often", conn: true },
    );
    const [bad] = await handle.history("bad", { limit: 1 });
    assert.equal(bad.action, "fail");
    assert.equal(typeof bad.error.group, "string");
    assert.ok(bad.finishedAt >= bad.firedAt && bad.firedAt >= bad.scheduledAt);
    assert.ok((await handle.job("often")).lastRunAt > 0);
  });
});
