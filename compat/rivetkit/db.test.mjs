// The database of RivetKit's actors, by its raw access.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, fresh, until } from "./support.mjs";

const app = appOf("db");
const make = () => app.client().ledger.getOrCreate(fresh("ledger"));

async function sleepAndWake(handle) {
  const before = await handle.wakes();
  await handle.rest();
  await until(async () => (await handle.wakes()) > before, "the actor slept and woke");
}

describe("c.db", () => {
  it("keeps rows, over a sleep", async () => {
    const handle = make();
    assert.deepEqual(await handle.add("a", 1.5), [{ id: 1 }]);
    assert.deepEqual(await handle.add("b", null), [{ id: 2 }]);
    const rows = [
      { name: "a", amount: 1.5 },
      { name: "b", amount: null },
    ];
    assert.deepEqual(await handle.all(), rows);
    await sleepAndWake(handle);
    assert.deepEqual(await handle.all(), rows);
  });

  it("of one actor is not that of another, and needs no declaration", async () => {
    const [one, two] = [make(), make()];
    await one.add("a", 1);
    assert.equal(await two.count(), 0);
    assert.equal(await app.client().undeclared.getOrCreate(fresh("undeclared")).one(), 1);
  });

  it("takes bindings by place and name, and scripts", async () => {
    const handle = make();
    await handle.add("a", 7);
    assert.deepEqual(await handle.named("a"), [{ amount: 7 }]);
    await handle.script();
    assert.equal(await handle.count(), 3);
  });

  it("gives every type back", async () => {
    const { b, ...rest } = await make().types();
    assert.deepEqual([...b], [1, 2]);
    assert.deepEqual(rest, { n: null, i: 7, f: 1.5, t: "ü", big: 2 ** 40 });
  });

  it("says what is wrong with a query", async () => {
    const handle = make();
    assert.match(await handle.fails("SELECT * FROM missing"), /no such table: missing/);
    assert.match(await handle.fails("SELEC 1"), /syntax error/);
    await handle.add("a", 1);
    assert.match(
      await handle.fails("INSERT INTO entries (name) VALUES ('a')"),
      /UNIQUE constraint failed/,
    );
    await assert.rejects(handle.duplicate("a"), {
      code: "internal_error",
      message: "An internal error occurred",
    });
    assert.equal(await handle.count(), 1);
  });

  it("commits a transaction, or rolls all of it back", async () => {
    const handle = make();
    assert.equal(await handle.both("a", "b"), 2);
    await assert.rejects(handle.both("c", "a"));
    assert.equal(await handle.rolledBack("d"), "no");
    assert.equal(await handle.count(), 2);
  });

  it("runs transactions that are begun at the same time one after the other", async () => {
    const handle = make();
    assert.equal(await handle.race(25), 25);
    const calls = Array.from({ length: 10 }, (_, index) => handle.both(`x${index}`, `y${index}`));
    await Promise.all(calls);
    assert.equal(await handle.count(), 20);
  });

  it("commits state and rows as one where it is asked to", async () => {
    const handle = make();
    assert.equal(await handle.together("good"), "committed");
    assert.deepEqual([await handle.failed(), await handle.count()], [1, 1]);
    assert.equal(await handle.together("bad"), "not both");
    assert.deepEqual([await handle.failed(), await handle.count()], [1, 1]);
  });

  it("keeps up with many statements, and large values", async () => {
    const handle = make();
    assert.deepEqual(await handle.stress(1_000), { n: 1_000, sum: 499_500 });
    assert.equal(await handle.large(1_000_000), 1_000_000);
    await sleepAndWake(handle);
    assert.equal(await handle.count(), 1_001);
  });

  it("keeps an author's pragmas", async () => {
    const handle = make();
    assert.equal(await handle.pragma(41), 41);
    await sleepAndWake(handle);
    assert.equal(await handle.pragma(), 41);
  });
});

describe("migrations", () => {
  it("run once each, in their order", async () => {
    const handle = app.client().migrated.getOrCreate(fresh("migrated"));
    assert.deepEqual(await handle.rows(), [{ x: 1, y: 2 }]);
    await sleepAndWake(handle);
    assert.deepEqual(await handle.rows(), [{ x: 1, y: 2 }]);
    assert.equal(Object.values((await handle.version())[0]).includes(2), true);
  });

  it("that fail keep their actor from starting", async () => {
    const { unmigrated } = app.client();
    const start = unmigrated.create(fresh("unmigrated")).then((made) => made.get());
    await assert.rejects(start, (error) => !/the migration fails/.test(error.message));
  });
});
