// What an answer waits for of statements that nobody awaits.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { db } from "../dist/db/index.js";
import { actor } from "../dist/index.js";
import { deferred, inMemory } from "./support/registry.mjs";

/** An actor with a table, and a transaction that lasts until `gate` says. */
const ledger = (gate, options = {}) =>
  actor({
    db: db({
      onMigrate: (db) => db.execute("CREATE TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY)"),
    }),
    state: { changes: 0 },
    options,
    actions: {
      hold: (c) =>
        c.db.transaction(async (tx) => {
          await tx.execute("INSERT INTO t VALUES (100)");
          gate.begun?.resolve();
          await gate.open?.promise;
        }),
      put(c, a) {
        c.db.execute("INSERT INTO t VALUES (?)", a).catch(() => {});
        return `asked for ${a}`;
      },
      change: (c) => {
        c.state.changes += 1;
        return c.state.changes;
      },
      look(c) {
        c.db.execute("SELECT * FROM t").catch(() => {});
        return "looked";
      },
      nothing: () => "nothing",
      burst(c, count) {
        const asked = Array.from({ length: count }, () =>
          c.db.execute("INSERT INTO t (a) VALUES (NULL)").then(
            () => "taken",
            ({ group, code }) => `${group}.${code}`,
          ),
        );
        gate.asked?.resolve();
        return Promise.all(asked);
      },
      async later(c, a) {
        const { db } = c;
        await null;
        db.execute("INSERT INTO t VALUES (?)", a).catch(() => {});
      },
      all: (c) => c.db.execute("SELECT a FROM t ORDER BY a"),
    },
  });

const pending = Symbol("pending");
/** What `promise` gives, or `pending` when nothing came while the loop turned often. */
async function soon(promise) {
  const turns = async () => {
    for (let n = 0; n < 200; n += 1) await new Promise((resolve) => setImmediate(resolve));
    return pending;
  };
  return Promise.race([promise, turns()]);
}

describe("an answer", () => {
  it("waits for the writes of its call, and for those of nobody's, but for no reading", async () => {
    const gate = { begun: deferred(), open: deferred() };
    const registry = inMemory({ ledger: ledger(gate) });
    const a = registry.client().ledger.getOrCreate("a");
    const left = [];
    const told = (name) => (value) => left.push([name, value]);
    const held = a.hold().then(told("hold"));
    await gate.begun.promise;

    assert.equal(await a.look(), "looked");
    assert.equal(await a.nothing(), "nothing");
    const put = a.put(1).then(told("put"));
    assert.equal(await a.nothing(), "nothing", "others do not wait for what has not begun");
    const behind = [a.later(2).then(told("later")), a.nothing().then(told("nothing"))];
    assert.equal(await soon(Promise.any([put, ...behind])), pending);
    gate.open.resolve();
    await Promise.all([held, put, ...behind]);

    const names = left.map(([name]) => name).filter((name) => !["hold", "put"].includes(name));
    assert.deepEqual(names, ["later", "nothing"]);
    assert.equal(await soon(a.nothing()), "nothing");
    assert.deepEqual(await a.all(), [{ a: 1 }, { a: 2 }, { a: 100 }]);
  });

  it("leaves when the write before it is refused", async () => {
    const registry = inMemory({ ledger: ledger({}) });
    const a = registry.client().ledger.getOrCreate("a");

    await Promise.all([a.put(1), a.put(1), a.put(1)]);

    assert.equal(await a.nothing(), "nothing");
    assert.deepEqual(await a.all(), [{ a: 1 }]);
  });

  it("waits for nothing where answers do not wait", async () => {
    const gate = { begun: deferred(), open: deferred() };
    const types = { ledger: ledger(gate, { durability: "interval" }) };
    const registry = inMemory(types);
    const a = registry.client().ledger.getOrCreate("a");
    const held = a.hold();
    await gate.begun.promise;

    assert.equal(await a.put(1), "asked for 1");
    gate.open.resolve();
    await held;

    assert.deepEqual(await a.all(), [{ a: 1 }, { a: 100 }]);
  });
});

describe("c.db", () => {
  it("takes 128 operations at once, and more when some have ended", async () => {
    const gate = { begun: deferred(), open: deferred(), asked: deferred() };
    const registry = inMemory({ ledger: ledger(gate) });
    const a = registry.client().ledger.getOrCreate("a");
    const held = a.hold();
    await gate.begun.promise;
    const codes = a.burst(130);
    await gate.asked.promise;
    gate.open.resolve();
    await held;

    const [taken, ...refused] = [...new Set(await codes)];
    assert.deepEqual([taken, refused], ["taken", ["sqlite.transaction_queue_full"]]);
    assert.equal((await codes).filter((code) => code === "taken").length, 128);
    assert.equal((await a.burst(1))[0], "taken");
    assert.equal((await a.all()).length, 130);
  });
});
