// Two runs with one seed: queues, schedules, SQL, keys and values, several actors, crashes.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { db } from "../dist/db/index.js";
import { actor, queue } from "../dist/index.js";
import { testRuntime } from "../dist/testing.js";
import { HOUR, MINUTE, SECOND, START } from "./support/trials.mjs";

/** Some days in which much happens at the same time, and what was seen of them. */
async function trace(seed) {
  const seen = [];
  const note = (c, ...what) => seen.push([c.name, c.key.join(), c.now - START, ...what]);
  const shop = actor({
    options: { sleepTimeout: 10 * SECOND, actionTimeout: HOUR },
    queues: { orders: queue({ maxDeliveries: 3, backoff: { initial: 5 * SECOND, max: MINUTE } }) },
    migrations: [{ version: 1, sql: "CREATE TABLE sold (id TEXT, at INTEGER)" }],
    onCreate: async (c) => {
      note(c, "created", c.actorId);
      await c.cron.set({ name: "report", expression: "17 */6 * * *", action: "report" });
      await c.cron.every({ name: "often", interval: 3 * HOUR, action: "often" });
    },
    onWake: (c) => note(c, "woke"),
    onSleep: (c) => note(c, "slept"),
    run: async (c) => {
      for await (const message of c.queue.iter({ completable: true })) {
        note(c, "order", message.id, message.body, message.deliveryCount);
        if (message.body % 5 === 4) {
          await message.nack({ error: "sold out" });
          continue;
        }
        const id = await c.schedule.after((message.body % 3) * MINUTE, "ship", message.body);
        c.sql.exec("INSERT INTO sold VALUES (?, ?)", id, c.now);
        await message.complete();
      }
    },
    actions: {
      async ship(c, n, fire) {
        note(c, "ship", n, fire.id);
        await c.kv.put(`shipped ${n}`, fire.id);
        const { balance } = await c
          .client()
          .bank.getOrCreate(String(n % 3))
          .pay(n);
        note(c, "paid", n, balance);
      },
      async report(c, fire) {
        const sold = c.sql.exec("SELECT * FROM sold ORDER BY id").toArray();
        note(c, "report", fire.scheduledAt - START, sold, await c.kv.list(""));
        for (const { id } of await c.queue.dead.list()) await c.queue.dead.retry(id);
      },
      often: (c) => note(c, "often"),
    },
  });
  const bank = actor({
    db: db({ onMigrate: (raw) => raw.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER)") }),
    actions: {
      pay: (c, n) =>
        c.db.transaction(async (tx) => {
          await tx.execute("INSERT INTO t VALUES (?)", n);
          await c.clock.sleep(n * 10);
          const [{ balance }] = await tx.execute("SELECT sum(n) AS balance FROM t");
          note(c, "pay", n, balance);
          return { balance };
        }),
    },
  });
  const test = testRuntime({ use: { shop, bank }, seed, logging: { level: "silent" } });
  const order = (n) => test.client.shop.getOrCreate(`${n % 4}`).send("orders", n);
  for (let day = 0; day < 3; day += 1) {
    const open = Array.from({ length: 12 }, (_, n) => order(day * 12 + n));
    await test.clock.advance("90 seconds");
    const rest = Promise.allSettled(open);
    if (day === 1) await test.crash({ down: "5 hours" });
    await rest;
    await test.clock.advance("1 day");
    seen.push(["awake", await test.awake()]);
    if (day === 0) await test.restart({ down: MINUTE });
    if (day === 2) {
      const crashed = test.crashAt("after_commit");
      await test.clock.advance("1 day");
      await crashed;
    }
  }
  await test.clock.advance("1 day");
  await test.close();
  return seen;
}

describe("one seed", () => {
  it("gives the same trace, another one other ids", { timeout: 120_000 }, async () => {
    const first = await trace(3);
    const whats = new Set(first.map((line) => line[3]));
    for (const what of ["created", "woke", "slept", "order", "ship", "paid", "pay", "report"]) {
      assert.ok(whats.has(what), `nothing of ${what}`);
    }
    assert.ok(first.length > 200, `only ${first.length} lines`);

    for (let n = 0; n < 2; n += 1) assert.deepEqual(await trace(3), first);

    const created = (seen) => seen.filter((line) => line[3] === "created").map((line) => line[4]);
    assert.notDeepEqual(created(await trace(4)), created(first));
  });
});
