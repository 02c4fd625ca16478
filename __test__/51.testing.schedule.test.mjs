// Schedules and cron jobs on the clock of a test.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { DAY, HOUR, MINUTE, runtime, SECOND, START } from "./support/trials.mjs";

/** An actor that notes what runs, and when. */
function noting(seen, actions = {}, more = {}) {
  return actor({
    ...more,
    actions: {
      after: (c, ms, given) => c.schedule.after(ms, given ?? "note"),
      cron: (c, job) => c.cron.set({ action: "note", ...job }),
      every: (c, job) => c.cron.every({ action: "note", ...job }),
      history: (c, name) => c.cron.history(name, { limit: 1_000 }),
      job: (c, name) => c.cron.get(name),
      dead: (c) => c.schedule.dead.list(),
      retry: (c, id) => c.schedule.dead.retry(id),
      list: (c) => c.schedule.list(),
      note(c, fire) {
        seen.push([fire.name ?? fire.kind, c.now - START, fire.attempt]);
      },
      ...actions,
    },
  });
}

describe("a one-shot", () => {
  it("runs at its moment and not before, in an actor that sleeps by then", async (t) => {
    const seen = [];
    const test = runtime(t, { it: noting(seen) });
    await test.client.it.getOrCreate("a").after(HOUR);

    await test.clock.advance(HOUR - 1);
    assert.deepEqual([seen, await test.awake()], [[], []]);
    await test.clock.advance(1);

    assert.deepEqual(seen, [["at", HOUR, 1]]);
  });

  it("runs in the order of the moments, whatever was asked for first and by whom", async (t) => {
    const seen = [];
    const { client, clock } = runtime(t, { it: noting(seen) });
    const delays = [50, 10, 40, 20, 30, 0, -5].map((n) => n * SECOND);
    await Promise.all(delays.map((ms, n) => client.it.getOrCreate(`${n % 3}`).after(ms)));

    await clock.advance("1 minute");

    const times = seen.map(([, at]) => at / SECOND);
    assert.deepEqual(times, [0, 0, 10, 20, 30, 40, 50]);
  });

  it("beyond the longest timer of Node.js runs at its moment too", async (t) => {
    const seen = [];
    const { client, clock } = runtime(t, { it: noting(seen) });
    await client.it.getOrCreate("a").after(400 * DAY);

    await clock.advance("399 days");
    assert.deepEqual(seen, []);
    await clock.advance("1 day");

    assert.deepEqual(seen, [["at", 400 * DAY, 1]]);
  });

  it("that fails is tried again, later each time, and lies among the dead at the end", async (t) => {
    const seen = [];
    const fails = (c, fire) => {
      seen.push([c.now - START, fire.attempt]);
      throw new Error("not today");
    };
    const test = runtime(t, { it: noting(seen, { fails }) });
    const handle = test.client.it.getOrCreate("a");
    const retry = { maxAttempts: 4, backoff: { initial: MINUTE, max: 3 * MINUTE } };
    const id = await handle.after(HOUR, { action: "fails", retry });

    await test.clock.advance("1 day");

    const minutes = [0, 1, 3, 6];
    assert.deepEqual(
      seen,
      minutes.map((n, at) => [HOUR + n * MINUTE, at + 1]),
    );
    const [dead] = await handle.dead();
    assert.deepEqual([dead.id, dead.attempts, dead.diedAt - START], [id, 4, HOUR + 6 * MINUTE]);
    assert.equal(await handle.retry(id), true);
    await test.clock.advance(0);
    assert.deepEqual(seen.at(-1), [DAY, 1]);
  });

  it("without retry runs once, and is on record when the process died under it", async (t) => {
    const seen = [];
    const test = runtime(t, {
      it: noting(seen, {
        async slow(c) {
          seen.push(["began", c.now - START]);
          await c.clock.sleep(30 * SECOND);
          seen.push(["ended", c.now - START]);
        },
      }),
    });
    const handle = test.client.it.getOrCreate("a");
    const id = await handle.after(HOUR, "slow");
    await test.clock.advance(HOUR + SECOND);
    assert.deepEqual(seen, [["began", HOUR]]);

    await test.crash();
    await test.clock.advance("1 day");

    assert.deepEqual(seen, [["began", HOUR]]);
    const [dead] = await handle.dead();
    assert.deepEqual([dead.id, dead.error.code], [id, "interrupted"]);
  });

  it("with retry runs again after a crash under it, counting what was begun", async (t) => {
    const seen = [];
    const test = runtime(t, {
      it: noting(seen, {
        async slow(c, fire) {
          seen.push(["began", fire.attempt]);
          await c.clock.sleep(30 * SECOND);
          seen.push(["ended", fire.attempt]);
        },
      }),
    });
    const handle = test.client.it.getOrCreate("a");
    await handle.after(HOUR, { action: "slow", retry: { maxAttempts: 3 } });
    await test.clock.advance(HOUR + SECOND);

    await test.crash();
    await test.clock.advance("1 day");

    assert.deepEqual(seen, [
      ["began", 1],
      ["began", 2],
      ["ended", 2],
    ]);
    assert.deepEqual(await handle.dead(), []);
  });

  for (const [point, runs] of [
    ["before_commit", 1],
    ["after_commit", 0],
  ]) {
    it(`whose claim meets a crash ${point} ${runs === 1 ? "runs once, after it" : "does not run twice"}`, async (t) => {
      const seen = [];
      const test = runtime(t, { it: noting(seen) });
      const handle = test.client.it.getOrCreate("a");
      await handle.after(HOUR);
      await test.clock.advance(0);

      // The next commit is the one that takes it.
      const crashed = test.crashAt(point);
      await test.clock.advance("2 hours");
      await crashed;
      await test.clock.advance("2 hours");

      assert.equal(seen.length, runs);
      assert.equal((await handle.dead()).length, 1 - runs);
      assert.deepEqual(await handle.list(), []);
    });
  }

  it("is not asked for when its commit fails", async (t) => {
    const seen = [];
    const test = runtime(t, { it: noting(seen) });
    const handle = test.client.it.getOrCreate("a");
    await handle.list();
    await test.failNextCommit();

    await assert.rejects(handle.after(MINUTE), { group: "storage", code: "full" });
    await test.clock.advance("1 hour");

    assert.deepEqual(seen, []);
    await handle.after(MINUTE);
    await test.clock.advance("1 hour");
    assert.equal(seen.length, 1);
  });
});

describe("a cron job", () => {
  it("follows the clock on the wall of its zone, over both changes of it", async (t) => {
    const seen = [];
    const now = Date.UTC(2025, 2, 29);
    const { client, clock } = runtime(t, { it: noting(seen) }, { now });
    const job = { name: "nightly", expression: "30 2 * * *", timezone: "Europe/Berlin" };
    await client.it.getOrCreate("a").cron(job);
    const days = () => seen.splice(0).map(([, at]) => new Date(START + at).toISOString());

    await clock.advance("3 days");
    // On the 30th of March there is no half past two.
    assert.deepEqual(days(), ["2025-03-29T01:30:00.000Z", "2025-03-31T00:30:00.000Z"]);
    await clock.advance(Date.UTC(2025, 9, 25, 12) - clock.now());
    days();

    await clock.advance("2 days");
    // On the 26th of October there are two, and the first one counts.
    assert.deepEqual(days(), ["2025-10-26T00:30:00.000Z", "2025-10-27T01:30:00.000Z"]);
  });

  it("is skipped while it runs, and on record as that", async (t) => {
    const seen = [];
    const long = {
      options: { sleepTimeout: MINUTE, actionTimeout: DAY },
    };
    const slow = async (c, fire) => {
      seen.push([fire.scheduledAt - START, c.now - START]);
      await c.clock.sleep(3.5 * HOUR);
    };
    const test = runtime(t, { it: noting(seen, { slow }, long) });
    const handle = test.client.it.getOrCreate("a");
    await handle.cron({ name: "hourly", expression: "0 * * * *", action: "slow" });

    await test.clock.advance("6 hours");

    const history = await handle.history("hourly");
    assert.deepEqual(
      seen,
      [1, 5].map((n) => [n * HOUR, n * HOUR]),
    );
    assert.deepEqual(
      history.map(({ result }) => result),
      ["skipped", "running", "skipped", "skipped", "skipped", "ok"],
    );
  });

  it("catches up once after a time in which nothing ran", async (t) => {
    const seen = [];
    const test = runtime(t, { it: noting(seen) });
    const handle = test.client.it.getOrCreate("a");
    await handle.cron({ name: "hourly", expression: "0 * * * *" });
    await handle.every({ name: "often", interval: 7 * MINUTE });
    await test.clock.advance("30 minutes");
    seen.length = 0;

    await test.crash({ down: "10 hours" });

    assert.deepEqual(seen, []);
    await test.clock.advance(0);
    assert.deepEqual(seen, [
      ["often", 10.5 * HOUR, 1],
      ["hourly", 10.5 * HOUR, 1],
    ]);
    await test.clock.advance("30 minutes");
    assert.equal(seen.filter(([name]) => name === "hourly").length, 2);
  });
});
