// `c.sql`: statements that run at once, within the turn.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

import { db } from "../dist/db/index.js";
import { actor } from "../dist/index.js";
import { inFolder, inMemory, newFolder } from "./support/registry.mjs";

const settings = { options: { actionTimeout: 5_000 } };

/** Keeps a number in the state and as many rows in a table. */
const book = actor({
  state: { count: 0 },
  db: db(),
  onWake: (c) => void c.sql.exec("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, a)"),
  actions: {
    add(c, a = 1) {
      c.state.count += 1;
      return c.sql.exec("INSERT INTO t (a) VALUES (?) RETURNING id", a).one().id;
    },
    all: (c) => c.sql.exec("SELECT a FROM t ORDER BY id").toArray(),
    both: (c) => [c.state.count, c.sql.exec("SELECT count(*) AS n FROM t").one().n],
    exec: (c, sql, ...bindings) => c.sql.exec(sql, ...bindings).toArray(),
    lose(c) {
      c.state.count += 100;
      c.sql.exec("INSERT INTO t (id) VALUES (9)");
      c.sql.exec("INSERT OR ROLLBACK INTO t (id) VALUES (9)");
    },
    caught(c) {
      c.sql.exec("INSERT INTO t (id) VALUES (1000)");
      try {
        c.sql.exec("INSERT INTO t (id) VALUES (1000)");
      } catch (error) {
        return error.message;
      }
    },
    async mixed(c) {
      c.sql.exec("INSERT INTO t (a) VALUES ('turn')");
      await c.db.execute("INSERT INTO t (a) VALUES ('queue')");
      c.sql.exec("INSERT INTO t (a) VALUES ('after')");
      return c.sql
        .exec("SELECT a FROM t")
        .toArray()
        .map(({ a }) => a);
    },
    whileOpen: (c) =>
      c.db.transaction(async (tx) => {
        await tx.execute("INSERT INTO t (a) VALUES ('tx')");
        try {
          c.sql.exec("SELECT 1");
        } catch (error) {
          return { group: error.group, code: error.code };
        }
      }),
    cursor(c) {
      const cursor = c.sql.exec(
        "SELECT 1 AS x, 2 AS y UNION ALL SELECT 3, 4 UNION ALL SELECT 5, 6",
      );
      const first = cursor.next().value;
      const raw = cursor.raw().next().value;
      const rest = [...cursor];
      return { first, raw, rest, columns: cursor.columnNames, read: cursor.rowsRead };
    },
    /** Sizes around the room through which values cross, and names that change. */
    odd(c) {
      const sizes = [0, 1, 65_000, 65_523, 65_524, 65_536, 200_000];
      const sent = sizes.map((size) => "ä".repeat(size / 2) + "x".repeat(size % 2));
      const echoed = sent.map((text) => c.sql.exec("SELECT ? AS a, 1 AS b", text).one());
      const same = echoed.every(({ a, b }, at) => a === sent[at] && b === 1);
      const values = {
        get outer() {
          return c.sql.exec("SELECT ?1 AS inner", "within").one().inner;
        },
        last: 7,
      };
      const named = c.sql.exec("SELECT :outer AS o, :last AS l", values).one();
      const proto = c.sql.exec('SELECT 1 AS "__proto__", 2 AS b').one();
      c.sql.exec("CREATE TABLE star (a)");
      c.sql.exec("INSERT INTO star VALUES (1)");
      const before = Object.keys(c.sql.exec("SELECT * FROM star").one());
      c.sql.exec("ALTER TABLE star RENAME COLUMN a TO b");
      const after = Object.keys(c.sql.exec("SELECT * FROM star").one());
      return { same, named, proto: Object.entries(proto), before, after };
    },
    many(c, count) {
      for (let at = 0; at < count; at += 1) c.sql.exec("INSERT INTO t (a) VALUES (?)", at);
    },
    sleep: (c) => c.sleep(),
  },
  ...settings,
});

const bookOf = (registry, key = "a") => registry.client().book.getOrCreate([key]);

describe("c.sql.exec()", () => {
  it("takes values and gives rows of any size, and the names that columns have now", async () => {
    const handle = bookOf(inMemory({ book }));

    assert.deepEqual(await handle.odd(), {
      same: true,
      named: { o: "within", l: 7 },
      proto: [
        ["__proto__", 1],
        ["b", 2],
      ],
      before: ["a"],
      after: ["b"],
    });
  });

  it("refuses what it cannot bind or run, in the words of SQLite", async () => {
    const handle = bookOf(inMemory({ book }));
    await assert.rejects(handle.exec(7), /query of sql.exec\(\) is 7, not text/);
    await assert.rejects(handle.exec("SELECT ?", { a: [] }), /value a of sql.exec\(\)/);
    await assert.rejects(handle.exec("COMMIT"), /internal|turn is a transaction already/i);
    assert.match(await handle.caught(), /UNIQUE constraint failed/);
    assert.deepEqual(await handle.exec("SELECT id FROM t"), [{ id: 1000 }]);
  });

  it("gives rows one by one, as lists, all, or the only one", async () => {
    const handle = bookOf(inMemory({ book }));
    assert.deepEqual(await handle.cursor(), {
      first: { x: 1, y: 2 },
      raw: [3, 4],
      rest: [{ x: 5, y: 6 }],
      columns: ["x", "y"],
      read: 3,
    });
    const none = actor({ actions: { go: (c) => c.sql.exec("SELECT 1 WHERE 0").one() } });
    const other = inMemory({ none }).client().none.getOrCreate("a");
    await assert.rejects(other.go(), { group: "sqlite", code: "not_one_row" });
  });

  it("commits with the state at the end of the turn, and both are there after sleep", async () => {
    const folder = await newFolder();
    const registry = inFolder(folder, { book });
    const handle = bookOf(registry);
    assert.equal(await handle.add(), 1);
    assert.equal(await handle.add(), 2);
    await handle.sleep();
    assert.deepEqual(await handle.both(), [2, 2]);
    await registry.shutdown();
    assert.deepEqual(await bookOf(inFolder(folder, { book })).both(), [2, 2]);
  });

  it("loses the turn and its memory when a statement rolls it back", async () => {
    const handle = bookOf(inMemory({ book }));
    await handle.add();
    await assert.rejects(handle.lose(), { group: "sqlite", code: "turn_lost" });
    assert.deepEqual(await handle.both(), [1, 1]);
  });

  it("throws at once while a transaction of c.db is open", async () => {
    const handle = bookOf(inMemory({ book }));
    assert.deepEqual(await handle.whileOpen(), { group: "sqlite", code: "transaction_open" });
    assert.deepEqual(await handle.all(), [{ a: "tx" }]);
  });

  it("goes in turn with the asynchronous statements", async () => {
    const handle = bookOf(inMemory({ book }));
    assert.deepEqual(await handle.mixed(), ["turn", "queue", "after"]);
  });

  it("gives an actor that declares nothing its file in the middle of a turn", async () => {
    const folder = await newFolder();
    const plain = actor({
      state: { n: 0 },
      actions: {
        only: (c) => ++c.state.n,
        make(c) {
          c.state.n += 1;
          c.sql.exec("CREATE TABLE t (a); INSERT INTO t VALUES (5)");
          return c.sql.exec("SELECT a FROM t").one().a;
        },
        sleep: (c) => c.sleep(),
        both: (c) => [c.state.n, c.sql.exec("SELECT a FROM t").one().a],
      },
    });
    const handle = inFolder(folder, { plain }).client().plain.getOrCreate("a");
    await handle.only();
    assert.equal(await handle.make(), 5);
    assert.equal(readdirSync(join(folder, "actors")).filter((it) => it.endsWith(".db")).length, 1);
    await handle.sleep();
    assert.deepEqual(await handle.both(), [2, 5]);
  });

  it("works in onCreate of a new actor, across its awaits", async () => {
    const made = actor({
      db: db(),
      state: { n: 1 },
      onCreate: async (c) => {
        c.sql.exec("CREATE TABLE t (a)");
        await c.db.execute("INSERT INTO t VALUES (1)");
        c.sql.exec("INSERT INTO t VALUES (2)");
      },
      actions: { all: (c) => c.sql.exec("SELECT a FROM t").toArray() },
      ...settings,
    });
    const handle = inMemory({ made }).client().made.getOrCreate("a");
    assert.deepEqual(await handle.all(), [{ a: 1 }, { a: 2 }]);
  });

  it("works where answers do not wait", async () => {
    const folder = await newFolder();
    const quick = actor({
      state: { n: 0 },
      actions: {
        add(c) {
          c.sql.exec("CREATE TABLE IF NOT EXISTS t (a)");
          c.sql.exec("INSERT INTO t VALUES (?)", ++c.state.n);
        },
        both: (c) => [c.state.n, c.sql.exec("SELECT count(*) AS n FROM t").one().n],
        flush: (c) => c.flush(),
      },
      options: { durability: "interval" },
    });
    const registry = inFolder(folder, { quick });
    const handle = registry.client().quick.getOrCreate("a");
    for (let at = 0; at < 20; at += 1) await handle.add();
    await handle.flush();
    assert.deepEqual(await handle.both(), [20, 20]);
    await registry.shutdown();
    const again = inFolder(folder, { quick }).client().quick.getOrCreate("a");
    assert.deepEqual(await again.both(), [20, 20]);
  });

  it("lets concurrent calls of many actors through", async () => {
    const registry = inFolder(await newFolder(), { book });
    const calls = [];
    for (let at = 0; at < 200; at += 1) calls.push(bookOf(registry, `k${at % 20}`).add(at));
    await Promise.all(calls);
    for (let at = 0; at < 20; at += 1) {
      assert.deepEqual(await bookOf(registry, `k${at}`).both(), [10, 10]);
    }
  });
});

describe("a process that is killed", () => {
  it("has every answered turn, whole, state and rows alike", async () => {
    const folder = await newFolder();
    const writer = fileURLToPath(new URL("support/sql-writer.mjs", import.meta.url));
    let least = 0;
    for (let round = 0; round < 4; round += 1) {
      least = await killed(writer, folder, 150 + 150 * round, least);
    }
    assert(least > 0, "something was written");
  });
});

/** Runs the writer, kills it, and gives the last number that it acknowledged. */
function killed(writer, folder, after, least) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [writer, folder, String(least)]);
    let [out, err] = ["", ""];
    child.stdout.on("data", (data) => {
      if (out === "") setTimeout(() => child.kill("SIGKILL"), after);
      out += data;
    });
    child.stderr.on("data", (data) => {
      err += data;
    });
    child.on("close", (code) => {
      if (code !== null) return reject(new Error(`the writer ended with ${code}: ${err}`));
      resolve(Number(out.trimEnd().split("\n").at(-1)));
    });
  });
}
