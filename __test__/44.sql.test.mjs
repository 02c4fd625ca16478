// `c.db`: SQL on an actor's own file.

import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

import { db, migrations } from "../dist/db/index.js";
import { actor } from "../dist/index.js";
import { deferred, inFolder, inMemory, newFolder, until } from "./support/registry.mjs";

const notes = db({
  onMigrate: (db) => db.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text)"),
});

const run = (c, sql, ...args) => c.db.execute(sql, ...args);

/** An actor that runs what it is asked to. */
const store = actor({
  db: notes,
  state: { count: 0 },
  actions: {
    run,
    add: async (c, text) => {
      c.state.count += 1;
      await c.db.execute("INSERT INTO notes (text) VALUES (?)", text);
      return c.state.count;
    },
    inside: (c, ...steps) =>
      c.db.transaction(async (tx) => {
        const found = [];
        for (const [sql, ...args] of steps) found.push(await tx.execute(sql, ...args));
        return found;
      }),
    failing: (c) =>
      c.db.transaction(async (tx) => {
        await tx.execute("INSERT INTO notes (text) VALUES ('gone')");
        throw new Error("on purpose");
      }),
    nested: (c) => c.db.transaction((tx) => tx.transaction(() => {})),
    slow: (c) => c.db.transaction(() => new Promise((r) => setTimeout(r, 200)), { timeout: 20 }),
    wrong: (c, options) => c.db.transaction(() => {}, options),
    close: (c) => c.db.close(),
    sleep: (c) => c.sleep(),
    destroy: (c) => c.destroy(),
    code: async (c, sql, ...args) => {
      try {
        return await c.db.execute(sql, ...args);
      } catch (error) {
        return { group: error.group, code: error.code, message: error.message };
      }
    },
  },
});

const handleOf = (registry, key = "a") => registry.client().store.getOrCreate([key]);

describe("c.db.execute()", () => {
  it("refuses values that SQLite cannot keep, naming them", async () => {
    const handle = handleOf(inMemory({ store }));
    const wrong = actor({ db: db(), actions: { run: (c) => run(c, "SELECT ?", () => 1) } });
    const other = inMemory({ wrong }).client().wrong.getOrCreate("a");
    await assert.rejects(other.run(), /value 1 of db.execute\(\) is a function/);
    await assert.rejects(handle.run("SELECT ?", 2n ** 63n), /beyond 64 bits/);
    await assert.rejects(handle.run(5), /sql of db.execute\(\) is 5, not text/);
  });

  it("rejects with the words of SQLite", async () => {
    const handle = handleOf(inMemory({ store }));
    assert.match((await handle.code("SELECT * FROM absent")).message, /no such table: absent/);
    await handle.run("INSERT INTO notes VALUES (1, 'a')");
    const twice = await handle.code("INSERT INTO notes VALUES (1, 'b')");
    assert.match(twice.message, /UNIQUE constraint failed: notes.id/);
    assert.match((await handle.code("SELECT ?", 1, 2)).message, /column index out of range/);
    const missing = await handle.code("SELECT :a", { b: 1 });
    assert.deepEqual([missing.group, missing.code], ["sqlite", "invalid_bind_parameter"]);
  });

  it("denies what would change other actors or the runtime's own rows", async () => {
    const handle = handleOf(inMemory({ store }));
    for (const sql of [
      "ATTACH 'x.db' AS x",
      "DELETE FROM _gr_state",
      "PRAGMA journal_mode=DELETE",
    ]) {
      assert.match((await handle.code(sql)).message, /not authorized/, sql);
    }
  });

  it("keeps every value exactly", async () => {
    const handle = handleOf(inMemory({ store }));
    const values = [null, 7, -1, 0.5, 2 ** 53 - 1, 2n ** 62n, -(2n ** 63n), "a\0b", "é", true];
    const [row] = await handle.run(
      `SELECT ${values.map((_, at) => `? AS v${at}`).join(", ")}`,
      ...values,
    );
    assert.deepEqual(Object.values(row), [...values.slice(0, -1), 1]);
    const [{ blob }] = await handle.run("SELECT ? AS blob", new Uint8Array([0, 255]));
    assert.deepEqual([...blob], [0, 255]);
  });

  it("takes values by name, with and without their sigil", async () => {
    const handle = handleOf(inMemory({ store }));
    const rows = await handle.run("SELECT :a AS a, @b AS b, $c AS c", { ":a": 1, b: 2, $c: 3 });
    assert.deepEqual(rows, [{ a: 1, b: 2, c: 3 }]);
  });

  it("runs a script, and gives the rows of its last statement that has columns", async () => {
    const handle = handleOf(inMemory({ store }));
    const rows = await handle.run("INSERT INTO notes VALUES (1, 'x'); SELECT text FROM notes;");
    assert.deepEqual(rows, [{ text: "x" }]);
  });
});

describe("c.db.transaction()", () => {
  it("refuses options that it does not know or cannot use", async () => {
    const handle = handleOf(inMemory({ store }));
    await assert.rejects(handle.wrong({ timeout: 0 }), /timeout of .* is 0, not milliseconds/);
    await assert.rejects(handle.wrong({ timeuot: 1 }), /did you mean "timeout"/);
    const named = { name: "x".repeat(129) };
    await assert.rejects(handle.wrong(named), { code: "transaction_invalid_argument" });
  });

  it("does not nest", async () => {
    await assert.rejects(handleOf(inMemory({ store })).nested(), { code: "transaction_nested" });
  });

  it("keeps all or nothing, and rejects with what its function threw", async () => {
    const handle = handleOf(inMemory({ store }));
    await assert.rejects(handle.failing(), /on purpose|internal/i);
    assert.deepEqual(await handle.run("SELECT * FROM notes"), []);
    const [, rows] = await handle.inside(
      ["INSERT INTO notes (text) VALUES (?)", "kept"],
      ["SELECT text FROM notes"],
    );
    assert.deepEqual(rows, [{ text: "kept" }]);
    assert.deepEqual(await handle.run("SELECT text FROM notes"), [{ text: "kept" }]);
  });

  it("expires, and what comes afterwards runs", async () => {
    const handle = handleOf(inMemory({ store }));
    await assert.rejects(handle.slow(), { group: "sqlite", code: "transaction_expired" });
    assert.deepEqual(await handle.run("SELECT 1 AS one"), [{ one: 1 }]);
  });

  it("lets concurrent ones take their turns", async () => {
    const handle = handleOf(inMemory({ store }));
    const add = (text) => handle.inside(["INSERT INTO notes (text) VALUES (?)", text]);
    await Promise.all(Array.from({ length: 20 }, (_, at) => add(`n${at}`)));
    assert.deepEqual(await handle.run("SELECT count(*) AS n FROM notes"), [{ n: 20 }]);
  });
});

describe("the file of an actor", () => {
  it("keeps state and rows over sleep, and over a restart", async () => {
    const folder = await newFolder();
    let registry = inFolder(folder, { store });
    assert.equal(await handleOf(registry).add("one"), 1);
    await handleOf(registry).sleep();
    assert.equal(await handleOf(registry).add("two"), 2);
    await registry.shutdown();
    registry = inFolder(folder, { store });
    assert.equal(await handleOf(registry).add("three"), 3);
    assert.deepEqual(await handleOf(registry).run("SELECT text FROM notes ORDER BY id"), [
      { text: "one" },
      { text: "two" },
      { text: "three" },
    ]);
  });

  it("goes with the actor when that is destroyed", async () => {
    const folder = await newFolder();
    const registry = inFolder(folder, { store });
    await handleOf(registry).add("one");
    assert.equal(
      readdirSync(join(folder, "actors")).filter((name) => name.endsWith(".db")).length,
      1,
    );
    await handleOf(registry).destroy();
    await until(() => readdirSync(join(folder, "actors")).length === 0, "the file is gone");
    assert.deepEqual(await handleOf(registry).run("SELECT * FROM notes"), []);
  });

  it("is not made for an actor that has no database", async () => {
    const folder = await newFolder();
    const plain = actor({ state: { n: 0 }, actions: { add: (c) => ++c.state.n, db: (c) => c.db } });
    const handle = inFolder(folder, { plain }).client().plain.getOrCreate("a");
    await handle.add();
    await assert.rejects(handle.db(), { group: "actor", code: "database_not_configured" });
    const files = existsSync(join(folder, "actors")) ? readdirSync(join(folder, "actors")) : [];
    assert.deepEqual(files, []);
  });

  it("refuses statements after close, and after the end of the generation", async () => {
    const kept = deferred();
    const keeper = actor({
      db: notes,
      actions: {
        close: (c) => c.db.close(),
        run,
        keep: (c) => void kept.resolve(c),
        sleep: (c) => c.sleep(),
      },
      onSleep: (c) => c.db.execute("INSERT INTO notes (text) VALUES ('asleep')"),
    });
    const handle = inMemory({ keeper }).client().keeper.getOrCreate("a");
    await handle.close();
    await assert.rejects(handle.run("SELECT 1"), /Database is closed/);
    const other = inMemory({ keeper }).client().keeper.getOrCreate("b");
    await other.keep();
    await other.sleep();
    const asleep = async () => (await other.run("SELECT text FROM notes")).length === 1;
    await until(asleep, "what onSleep wrote is there");
    const c = await kept.promise;
    await assert.rejects(c.db.execute("SELECT 1"), /Database is closed/);
  });
});

describe("migrations", () => {
  const steps = [
    { version: 1, sql: "CREATE TABLE t (a); INSERT INTO t VALUES (1)" },
    { version: 2, up: (db) => db.execute("INSERT INTO t VALUES (?)", 2) },
  ];
  const kind = (migrations) =>
    actor({ db: db(), migrations, actions: { run, sleep: (c) => c.sleep() } });

  it("are refused when they are not contiguous, or not SQL or a function", () => {
    assert.throws(() => kind([{ version: 2, sql: "" }]), /step 1 of migrations .* count from 1/);
    assert.throws(() => kind([{ version: 1 }]), /neither sql nor up/);
    assert.throws(() => kind({}), /migrations of actor\(\) is an object, not a list/);
    assert.throws(() => migrations({ migrations: [], tableName: "a b" }), /tableName/);
    assert.throws(() => actor({ db: {} }), /db of actor\(\) is an object/);
  });

  it("are applied once each, in order", async () => {
    const folder = await newFolder();
    const first = inFolder(folder, { store: kind(steps.slice(0, 1)) });
    assert.deepEqual(await handleOf(first).run("SELECT a FROM t"), [{ a: 1 }]);
    await handleOf(first).sleep();
    assert.deepEqual(await handleOf(first).run("SELECT a FROM t"), [{ a: 1 }]);
    await first.shutdown();
    const second = inFolder(folder, { store: kind(steps) });
    assert.deepEqual(await handleOf(second).run("SELECT a FROM t"), [{ a: 1 }, { a: 2 }]);
    await second.shutdown();
    const older = inFolder(folder, { store: kind(steps.slice(0, 1)) });
    await assert.rejects(handleOf(older).run("SELECT 1"), { code: "schema_newer" });
  });

  it("leave nothing when one fails, and the start fails with it", async () => {
    const folder = await newFolder();
    const bad = [...steps, { version: 3, sql: "nonsense" }];
    const first = inFolder(folder, { store: kind(bad) });
    await assert.rejects(handleOf(first).run("SELECT 1"), /syntax error/);
    await first.shutdown();
    const second = inFolder(folder, { store: kind(steps) });
    assert.deepEqual(await handleOf(second).run("SELECT a FROM t"), [{ a: 1 }, { a: 2 }]);
  });
});
