// SQL in a test runtime: files that outlive crashes, statements that fail, and who waits for whom.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { db } from "../dist/db/index.js";
import { actor, queue } from "../dist/index.js";
import { HOUR, MINUTE, runtime, START } from "./support/trials.mjs";

const schema = "CREATE TABLE IF NOT EXISTS notes (text TEXT)";

/** The same actor with statements in place and with awaited ones. */
const ways = {
  "c.sql": actor({
    state: { n: 0 },
    migrations: [{ version: 1, sql: schema }],
    actions: {
      add(c, text) {
        c.state.n += 1;
        c.sql.exec("INSERT INTO notes VALUES (?)", text);
      },
      all: (c) => [c.state.n, ...c.sql.exec("SELECT text FROM notes").raw()].flat(),
    },
  }),
  "c.db": actor({
    state: { n: 0 },
    db: db({ onMigrate: (raw) => raw.execute(schema) }),
    actions: {
      async add(c, text) {
        await c.db.execute("INSERT INTO notes VALUES (?)", text);
        c.state.n += 1;
      },
      all: async (c) => {
        const rows = await c.db.execute("SELECT text FROM notes");
        return [c.state.n, ...rows.map((row) => row.text)];
      },
    },
  }),
  "c.sql without a declaration": actor({
    state: { n: 0 },
    actions: {
      add(c, text) {
        c.sql.exec(schema);
        c.state.n += 1;
        c.sql.exec("INSERT INTO notes VALUES (?)", text);
      },
      all(c) {
        c.sql.exec(schema);
        return [c.state.n, ...c.sql.exec("SELECT text FROM notes").raw()].flat();
      },
    },
  }),
};

for (const [way, notes] of Object.entries(ways)) {
  describe(`what ${way} wrote`, () => {
    it("is there after an eviction, a crash and a restart, with the state", async (t) => {
      const test = runtime(t, { notes });
      const handle = test.client.notes.getOrCreate("a");
      await handle.add("one");

      await test.evict(handle);
      assert.deepEqual(await handle.all(), [1, "one"]);
      await test.crash();
      assert.deepEqual(await handle.all(), [1, "one"]);
      await handle.add("two");
      await test.restart();

      assert.deepEqual(await handle.all(), [2, "one", "two"]);
      assert.deepEqual((await test.client.notes.getOrCreate("b").all())[0], 0);
    });

    it("is not there when its commit failed", async (t) => {
      const test = runtime(t, { notes });
      const handle = test.client.notes.getOrCreate("a");
      await handle.add("one");
      await test.failNextCommit();

      await assert.rejects(handle.add("lost"), { group: "storage", code: "full" });

      assert.deepEqual(await handle.all(), [1, "one"]);
      await handle.add("two");
      assert.deepEqual(await handle.all(), [2, "one", "two"]);
    });

    for (const point of ["before_commit", "after_commit"]) {
      it(`is ${point === "after_commit" ? "" : "not "}there when the process died ${point}`, async (t) => {
        const test = runtime(t, { notes });
        const handle = test.client.notes.getOrCreate("a");
        await handle.add("one");
        const crashed = test.crashAt(point);
        await test.clock.advance(0);

        await assert.rejects(handle.add("two"), { group: "testing", code: "crashed" });
        await crashed;

        const [n, ...texts] = await handle.all();
        assert.deepEqual(texts, point === "after_commit" ? ["one", "two"] : ["one"]);
        // An awaited statement is a commit of its own, before that of the state.
        if (way !== "c.db") assert.equal(n, texts.length);
      });
    }
  });
}

describe("c.db", () => {
  const bank = actor({
    options: { actionTimeout: 10 * HOUR },
    db: db({ onMigrate: (raw) => raw.execute("CREATE TABLE IF NOT EXISTS t (x)") }),
    actions: {
      slow: (c, ms) =>
        c.db.transaction(
          async (tx) => {
            await tx.execute("INSERT INTO t VALUES ('slow')");
            await c.clock.sleep(ms);
          },
          { timeout: 5 * HOUR },
        ),
      async insert(c) {
        await c.db.execute("INSERT INTO t VALUES ('quick')");
        return c.now - START;
      },
      batch: (c) => c.db.execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)"),
      all: async (c) => (await c.db.execute("SELECT x FROM t")).map((row) => row.x),
      put: async (c) => {
        await c.kv.put("k", "v");
        return c.now - START;
      },
    },
  });

  it("lets a statement wait for a transaction that waits for the clock", async (t) => {
    const { client, clock } = runtime(t, { bank }, { stallTimeout: 500 });
    const handle = client.bank.getOrCreate("a");
    await handle.all();
    const slow = handle.slow(HOUR);
    await clock.advance(0);
    const waits = [handle.insert(), handle.put()];

    await clock.advance("2 hours");

    await slow;
    assert.deepEqual(await Promise.all(waits), [HOUR, HOUR]);
    assert.deepEqual(await handle.all(), ["slow", "quick"]);
  });

  it("leaves nothing of a transaction that was open in a crash, or whose commit failed", async (t) => {
    const test = runtime(t, { bank });
    const handle = test.client.bank.getOrCreate("a");
    await handle.insert();
    const lost = assert.rejects(handle.slow(HOUR), { code: "crashed" });
    await test.clock.advance("1 minute");

    await test.crash();
    await lost;

    assert.deepEqual(await handle.all(), ["quick"]);
    const failed = handle.slow(MINUTE);
    await test.clock.advance(0);
    await test.failNextCommit();
    const full = assert.rejects(failed, { group: "storage", code: "full" });
    await test.clock.advance("1 hour");
    await full;
    assert.deepEqual(await handle.all(), ["quick"]);
    await handle.insert();
    assert.deepEqual(await handle.all(), ["quick", "quick"]);
  });

  it("ends a transaction that lasts for too long, by the clock", async (t) => {
    const { client, clock } = runtime(t, { bank });
    const handle = client.bank.getOrCreate("a");
    await handle.all();
    const slow = assert.rejects(handle.slow(6 * HOUR), { group: "sqlite" });

    await clock.advance("7 hours");

    await slow;
    assert.deepEqual(await handle.all(), []);
  });

  it("has each statement of a text fail alone", async (t) => {
    const test = runtime(t, { bank });
    const handle = test.client.bank.getOrCreate("a");
    await handle.all();
    await test.failNextCommit();

    await assert.rejects(handle.batch(), { group: "storage", code: "full" });

    assert.deepEqual(await handle.all(), []);
    await handle.batch();
    assert.deepEqual(await handle.all(), [1, 2]);
  });
});

it("statements, a schedule and a message of one turn are there together after a crash, or not at all", async (t) => {
  const all = actor({
    state: { n: 0 },
    queues: { jobs: queue() },
    migrations: [{ version: 1, sql: schema }],
    actions: {
      async step(c, text) {
        c.state.n += 1;
        c.sql.exec("INSERT INTO notes VALUES (?)", text);
        await Promise.all([
          c.queue.send("jobs", text),
          c.schedule.after(HOUR, "nothing"),
          c.kv.put(text, "kept"),
        ]);
      },
      nothing() {},
      async look(c) {
        const waiting = await c.queue.tryNextBatch({ count: 100, completable: true });
        for (const message of waiting) await c.queue.complete(message);
        return [
          c.state.n,
          c.sql.exec("SELECT text FROM notes").toArray().length,
          waiting.length,
          (await c.schedule.list()).length,
          (await c.kv.list("")).length,
        ];
      },
    },
  });
  for (const [point, n] of [
    ["before_commit", 0],
    ["after_commit", 1],
  ]) {
    const test = runtime(t, { all });
    const handle = test.client.all.getOrCreate("a");
    assert.deepEqual(await handle.look(), [0, 0, 0, 0, 0]);
    const crashed = test.crashAt(point);
    await test.clock.advance(0);

    await assert.rejects(handle.step("one"), { code: "crashed" });
    await crashed;

    assert.deepEqual(await handle.look(), [n, n, n, n, n], point);
  }
});

it("what is changed behind a transaction begun by hand fails after a minute, and the transaction with it", async (t) => {
  const notes = actor({
    state: { n: 0 },
    db: db({ onMigrate: (raw) => raw.execute(schema), warnOnManualTransactions: false }),
    actions: {
      async begin(c) {
        await c.db.execute("BEGIN");
        await c.db.execute("INSERT INTO notes VALUES ('lost')");
        c.state.n += 1;
      },
      async end(c) {
        await c.db.execute("COMMIT");
      },
      all: async (c) => [c.state.n, ...(await c.db.execute("SELECT text FROM notes"))],
    },
  });
  const test = runtime(t, { notes });
  const handle = test.client.notes.getOrCreate("a");
  await handle.all();

  const begun = handle.begin().catch((error) => error);
  await test.clock.advance(MINUTE - 1);
  assert.equal(await Promise.race([begun, Promise.resolve("waits")]), "waits");
  await test.clock.advance(1);

  const { group, code, metadata } = await begun;
  assert.deepEqual(
    { group, code, metadata },
    {
      group: "sqlite",
      code: "manual_transaction_open",
      metadata: { timeout_ms: MINUTE },
    },
  );
  assert.deepEqual(await handle.all(), [0]);
  const again = handle.begin();
  await test.clock.advance(MINUTE - 1);
  await handle.end();
  await again;
  assert.deepEqual(await handle.all(), [1, { text: "lost" }]);
});
