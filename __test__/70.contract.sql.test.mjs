// What the contract says of an actor's database, and of what crosses of it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { bridged, recordOf } from "./support/bridge.mjs";
import { get, outcome, typed } from "./support/contract.mjs";
import { actor, awake, bytes, none, opened, text } from "./support/native.mjs";

const target = actor("counter", "a");

const int = (intValue) => ({ kind: "int", intValue });
const float = (floatValue) => ({ kind: "float", floatValue });
const chars = (textValue) => ({ kind: "text", textValue });
const blob = (blobValue) => ({ kind: "blob", blobValue });

async function database(t, callbacks = {}) {
  const host = await opened(t, { counter: typed(callbacks) });
  const bag = await awake(host, target);
  return { host, bag, context: bag.context, sql: bag.context.sql() };
}

describe("values of SQL", () => {
  it("come back as the contract has them", async (t) => {
    const { sql } = await database(t);

    const { columns, rows } = await sql.execute(
      "SELECT NULL, ?, ?, ?, ?, 9007199254740991, 9007199254740992, -9223372036854775808, x''",
      [int(7), float(1.5), chars("ü\u0000"), blob(Buffer.from([1, 255]))],
    );

    assert.equal(columns.length, 9);
    const [row] = rows;
    assert.deepEqual(row.slice(0, 4), [null, 7, 1.5, "ü\u0000"]);
    assert.deepEqual([...row[4]], [1, 255]);
    assert.ok(row[4] instanceof Uint8Array);
    // What a workflow of RivetKit's reads a part of: no other bytes may be behind it.
    assert.deepEqual([...new Uint8Array(row[4].slice(1).buffer)], [255]);
    assert.deepEqual(row.slice(5, 8), [
      9_007_199_254_740_991,
      9_007_199_254_740_992n,
      -9_223_372_036_854_775_808n,
    ]);
    assert.deepEqual([...row[8]], []);
  });

  it("are bound by their kinds: a whole number is a real one where it is called a float", async (t) => {
    const { sql } = await database(t);
    const bound = [int(1), float(1), { kind: "null" }, chars("1"), blob(none)];

    const { rows } = await sql.execute(
      "SELECT typeof(?), typeof(?), typeof(?), typeof(?), typeof(?)",
      bound,
    );

    assert.deepEqual(rows, [["integer", "real", "null", "text", "blob"]]);
    const large = [int(2 ** 60), int(2 ** 63), int(-(2 ** 64)), int(1.5)];
    assert.deepEqual((await sql.execute("SELECT ?, ?, ?, ?", large)).rows, [
      [2n ** 60n, 2n ** 63n - 1n, -(2n ** 63n), 1],
    ]);
  });

  it("that are too few are null, and too many are refused", async (t) => {
    const { sql } = await database(t);

    assert.deepEqual((await sql.execute("SELECT ?, ?", [int(1)])).rows, [[1, null]]);
    const refused = await sql.execute("SELECT ?", [int(1), int(2)]).catch((error) => error);
    const { code, metadata } = recordOf(refused);
    assert.equal(code, "internal_error");
    assert.match(metadata.error, /column index out of range/);
  });
});

describe("a statement", () => {
  it("tells SQLite's counters of its connection, a reading one those before", async (t) => {
    const { sql } = await database(t);
    await sql.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, n)");

    const two = await sql.execute("INSERT INTO t (n) VALUES (1), (2)");
    const none = await sql.execute("UPDATE t SET n = 3 WHERE id = 99");
    const all = await sql.execute("DELETE FROM t");

    assert.deepEqual([two.columns, two.rows, two.changes, two.lastInsertRowId], [[], [], 2, 2]);
    assert.equal(none.changes, 0);
    assert.equal(all.changes, 2);
  });

  it("of RETURNING has rows and changes", async (t) => {
    const { sql } = await database(t);
    await sql.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, n)");

    const { columns, rows, changes } = await sql.execute(
      "INSERT INTO t (n) VALUES (?) RETURNING id, n",
      [int(5)],
    );

    assert.deepEqual([columns, rows, changes], [["id", "n"], [[1, 5]], 1]);
  });

  it("may be followed by nothing but space and a semicolon", async (t) => {
    const { sql } = await database(t);

    assert.deepEqual((await sql.execute("SELECT 1;\n ")).rows, [[1]]);
    await assert.rejects(sql.execute("SELECT 1; SELECT 2"), (error) => {
      const { metadata } = recordOf(error);
      assert.match(metadata.error, /sqlite execute only supports a single statement/);
      return true;
    });
  });

  it("of a script answers for the last one that has rows", async (t) => {
    const { sql } = await database(t);

    const told = await sql.exec("CREATE TABLE t (n); SELECT 1 AS a; SELECT 2 AS b; DELETE FROM t;");

    assert.deepEqual([told.columns, told.rows], [["b"], [[2]]]);
    const empty = await sql.exec("");
    assert.deepEqual([empty.columns, empty.rows], [[], []]);
  });
});

describe("a batch", () => {
  it("is all or nothing", async (t) => {
    const { sql } = await database(t);
    await sql.exec("CREATE TABLE t (n UNIQUE)");
    const insert = (n) => ({ sql: "INSERT INTO t VALUES (?)", params: [int(n)] });

    const [one, two] = await sql.executeBatch([insert(1), { sql: "SELECT n FROM t" }]);
    await assert.rejects(
      sql.executeBatch([insert(2), insert(1)]),
      bridged("core", "internal_error"),
    );

    assert.deepEqual([one.changes, two.rows], [1, [[1]]]);
    assert.deepEqual((await sql.execute("SELECT n FROM t")).rows, [[1]]);
  });
});

describe("a transaction", () => {
  it("sees its own writes while others wait, and is over once", async (t) => {
    const { sql } = await database(t);
    await sql.exec("CREATE TABLE t (n)");
    const transaction = await sql.beginTransaction(null, "name");
    await transaction.execute("INSERT INTO t VALUES (1)");

    const outside = outcome(sql.execute("SELECT count(*) FROM t"));
    const { rows } = await transaction.execute("SELECT count(*) FROM t");
    assert.equal(outside.state, "pending");
    await transaction.exec("SAVEPOINT s; INSERT INTO t VALUES (2); ROLLBACK TO s; RELEASE s");
    await transaction.commit();

    assert.deepEqual(rows, [[1]]);
    assert.deepEqual((await sql.execute("SELECT n FROM t")).rows, [[1]]);
    const key = /./;
    for (const late of [
      () => transaction.execute("SELECT 1"),
      () => transaction.exec("SELECT 1"),
      () => transaction.commit(),
    ]) {
      await assert.rejects(late(), (error) => {
        const { group, code, metadata } = recordOf(error);
        assert.deepEqual(
          [group, code, metadata.state],
          ["sqlite", "transaction_terminal", "committed"],
        );
        assert.match(metadata.key, key);
        return true;
      });
    }
  });

  it("that is begun and ended by hand works, and saves of the state wait for it", async (t) => {
    const { sql, host, bag } = await database(t);
    await sql.exec("CREATE TABLE t (n)");

    await sql.execute("BEGIN");
    await sql.execute("INSERT INTO t VALUES (1)");
    await sql.execute("ROLLBACK");
    await sql.execute("BEGIN IMMEDIATE");
    await sql.execute("INSERT INTO t VALUES (2)");
    await sql.execute("COMMIT");
    await host.submit(target, "set", bytes("x"), 2);
    await bag.context.requestSaveAndWait({ immediate: true });

    assert.deepEqual((await sql.execute("SELECT n FROM t")).rows, [[2]]);
    assert.equal(text(bag.context.state()), "x");
  });
});

describe("a pragma of the author's", () => {
  it("stays", async (t) => {
    const { sql, host, bag } = await database(t);
    await sql.execute("PRAGMA user_version = 7");
    await sql.execute("PRAGMA foreign_keys = OFF");
    assert.deepEqual((await sql.execute("PRAGMA foreign_keys")).rows, [[0]]);

    await host.sleep(bag.identity.actorId);
    const again = await awake(host, target);

    assert.deepEqual((await again.context.sql().execute("PRAGMA user_version")).rows, [[7]]);
  });
});

describe("close()", () => {
  it("is the end of everything of its generation that is stored", async (t) => {
    const { sql, context, host, bag } = await database(t);
    await sql.exec("CREATE TABLE t (n)");
    const transaction = await sql.beginTransaction();
    const rolledBack = outcome(transaction.execute("INSERT INTO t VALUES (1)"));

    await sql.close();
    await sql.close();

    assert.notEqual(rolledBack.state, "pending");
    const [kv, queue, schedule] = [context.kv(), context.queue(), context.schedule()];
    for (const late of [
      () => sql.execute("SELECT 1"),
      () => context.sql().exec("SELECT 1"),
      () => sql.executeBatch([{ sql: "SELECT 1" }]),
      () => sql.beginTransaction(),
      () => transaction.execute("SELECT 1"),
      () => kv.get(bytes("k")),
      () => kv.put(bytes("k"), bytes("v")),
      () => queue.send("job", bytes("x")),
      () => queue.nextBatch({ timeoutMs: 0 }),
      () => schedule.after(1_000, "get", none),
      () => schedule.list(),
      () => context.beginStateTransaction(),
    ]) {
      await assert.rejects(
        async () => late(),
        bridged("sqlite", "transaction_closed"),
        late.toString(),
      );
    }
    await host.sleep(bag.identity.actorId);
    const again = await awake(host, target);
    assert.deepEqual((await again.context.sql().execute("SELECT n FROM t")).rows, []);
  });
});

describe("a transaction with the state", () => {
  it("commits statements, state and states of connections together, or nothing", async (t) => {
    const createConnState = async () => bytes("c0");
    const hibernates = { canHibernateWebsocket: true };
    const type = typed({ createConnState, actions: { get } }, hibernates);
    const host = await opened(t, { counter: type });
    const { context } = await awake(host, target);
    await context.sql().exec("CREATE TABLE t (n)");
    const conn = await context.connectConn(none);

    const first = await context.beginStateTransaction(1_000);
    await first.execute("INSERT INTO t VALUES (?)", [int(1)]);
    await first.rollback();
    await first.rollback();
    const second = await context.beginStateTransaction();
    await second.execute("INSERT INTO t VALUES (?)", [int(2)]);
    await second.commit({
      state: bytes("s1"),
      connHibernation: [],
      connHibernationRemoved: [],
    });
    const third = await context.beginStateTransaction();
    await third.execute("INSERT INTO t VALUES (?)", [int(3)]);
    const connHibernation = [{ connId: conn.id(), bytes: bytes("c1") }];
    // It has no socket that outlives a sleep, so nothing of it can be stored: nothing at all is.
    await assert.rejects(
      third.commit({ state: bytes("s3"), connHibernation, connHibernationRemoved: [] }),
      bridged("connection", "not_hibernatable"),
    );

    assert.deepEqual((await context.sql().execute("SELECT n FROM t")).rows, [[2]]);
    assert.equal(text(context.state()), "s1");
    await assert.rejects(second.commit({ state: bytes("s2") }), (error) => {
      recordOf(error);
      return true;
    });
    assert.equal(text(context.state()), "s1");
  });

  it("cannot begin once its actor stops, and an open one is rolled back then", async (t) => {
    let refused;
    const onSleep = async (_, { ctx }) => {
      refused = await ctx.beginStateTransaction().catch((error) => error);
    };
    const { host, bag, context, sql } = await database(t, { onSleep });
    await sql.exec("CREATE TABLE t (n)");
    const open = await context.beginStateTransaction();
    await open.execute("INSERT INTO t VALUES (1)");

    await host.sleep(bag.identity.actorId);
    const again = await awake(host, target);

    bridged("actor", "stopping")(refused);
    assert.deepEqual((await again.context.sql().execute("SELECT n FROM t")).rows, []);
  });
});
