// c.transaction: what a function changes over several turns, all or nothing.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { db } from "../dist/db/index.js";
import { actor, queue } from "../dist/index.js";
import { testRuntime } from "../dist/testing.js";
import { deferred, inMemory, until } from "./support/registry.mjs";

const migrations = [{ version: 1, sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, a)" }];

/** `run(body)` calls `body(c)` as an action of one actor; `small` has no file, and none of SQL. */
function inside({ small = false, options = {} } = {}, registry = inMemory) {
  const bodies = [];
  const it = actor({
    state: { n: 0, list: [], deep: { a: 1 }, at: new Date(0) },
    queues: { jobs: queue() },
    ...(small ? {} : { db: db(), migrations }),
    options,
    actions: { run: (c, at) => bodies[at](c), tick: () => {} },
  });
  const opened = registry({ it });
  const handle = opened.client().it.getOrCreate("k");
  const run = (body) => handle.run(bodies.push(body) - 1);
  return { run, handle, registry: opened };
}

const codeOf = (promise) =>
  Promise.resolve(promise).then(
    (value) => assert.fail(`it gave ${JSON.stringify(value)}`),
    (error) => `${error.group}.${error.code}`,
  );

const rows = (c) =>
  c.db.execute("SELECT a FROM t ORDER BY id").then((all) => all.map(({ a }) => a));

/** Something of everything. */
async function change(tx, message) {
  tx.state.n += 1;
  tx.state.list.push("x");
  tx.sql.exec("INSERT INTO t (a) VALUES ('now')");
  await tx.db.execute("INSERT INTO t (a) VALUES ('later')");
  await tx.kv.put("k", "v");
  await tx.queue.send("jobs", { n: 1 });
  if (message !== undefined) await tx.queue.complete(message);
  await tx.schedule.after(60_000, "tick");
  await tx.cron.every({ name: "c", interval: 60_000, action: "tick" });
}

const seen = async (c) => [
  c.state.n,
  c.state.list.length,
  await rows(c),
  await c.kv.get("k"),
  (await c.schedule.list()).length,
  (await c.cron.list()).length,
];

describe("c.transaction()", () => {
  it("refuses what is no function, unknown options, and a timeout that is none", async () => {
    const { run } = inside();
    const refused = [
      [undefined, undefined, /transaction\(\) takes a function/],
      [() => 1, { timout: 1 }, /unknown key "timout" of options of transaction\(\)/],
      [() => 1, { timeout: 0 }, /timeout of options of transaction\(\) is 0/],
      [() => 1, { timeout: Number.NaN }, /timeout of options/],
    ];
    for (const [body, options, message] of refused) {
      await run((c) => assert.rejects(c.transaction(body, options), { message }));
    }
  });

  it("commits everything that its function changed, and gives what that gave", async () => {
    const { run } = inside();
    const before = await run(seen);
    const during = await run(async (c) => {
      await c.queue.send("jobs", "first");
      const message = await c.queue.next({ completable: true });
      const inTx = [];
      const given = await c.transaction(async (tx) => {
        await change(tx, message);
        inTx.push(tx.state.n, await tx.kv.get("k"), (await tx.schedule.list()).length);
        inTx.push((await tx.cron.get("c")).name, tx.sql.exec("SELECT a FROM t").toArray().length);
        return "given";
      });
      return [given, inTx, await codeOf(message.complete())];
    });

    assert.deepEqual(before, [0, 0, [], null, 0, 0]);
    assert.deepEqual(during, ["given", [1, "v", 1, "c", 2], "queue.already_completed"]);
    assert.deepEqual(await run(seen), [1, 1, ["now", "later"], "v", 1, 1]);
    const left = await run(async (c) => (await c.queue.tryNextBatch({ count: 9 })).length);
    assert.equal(left, 1, "the message that it sent");
  });

  it("changes nothing when its function throws, and rejects with that", async () => {
    const { run } = inside();
    const message = await run(async (c) => {
      await c.queue.send("jobs", "first");
      const open = await c.queue.next({ completable: true });
      const thrown = await c
        .transaction(async (tx) => {
          await change(tx, open);
          throw new Error("no");
        })
        .catch((error) => error.message);
      await open.complete();
      return thrown;
    });

    assert.equal(message, "no");
    assert.deepEqual(await run(seen), [0, 0, [], null, 0, 0]);
    assert.equal(await run((c) => c.queue.tryNext()), undefined);
  });

  it("of an actor without SQL leaves it without a file, and of one that begins with it makes one", async () => {
    const { run } = inside({ small: true });
    await run((c) => c.transaction((tx) => void tx.state.list.push(1)));
    await run((c) =>
      c.transaction(async (tx) => {
        tx.sql.exec("CREATE TABLE t (a)");
        tx.sql.exec("INSERT INTO t VALUES (1)");
        await null;
        tx.state.n = 5;
      }),
    );

    assert.deepEqual(
      await run((c) => [c.state.list, c.state.n, c.sql.exec("SELECT a FROM t").one().a]),
      [[1], 5, 1],
    );
    assert.equal(
      await run((c) => codeOf(c.transaction((tx) => tx.db))),
      "actor.database_not_configured",
    );
  });

  it("does not nest, and refuses inside what is outside of it", async () => {
    const { run } = inside();
    const codes = await run((c) =>
      c.transaction(async (tx) => {
        const uses = [
          () => c.transaction(() => 1),
          () => tx.transaction(() => 1),
          () => tx.db.transaction(() => 1),
          () => c.kv.get("k"),
          () => c.db.execute("SELECT 1"),
          () => c.schedule.list(),
          () => c.cron.list(),
          () => c.queue.send("jobs", 1),
          async () => c.sql.exec("SELECT 1"),
          async () => {
            c.state.n = 1;
          },
        ];
        return Promise.all(uses.map((use) => codeOf(use())));
      }),
    );

    assert.deepEqual(codes, [
      "actor.transaction_nested",
      "actor.transaction_nested",
      "sqlite.transaction_nested",
      ...Array(5).fill("actor.inside_transaction"),
      "sqlite.transaction_open",
      "actor.state_transaction_conflict",
    ]);
  });

  it("cannot be used once it has ended", async () => {
    const { run } = inside();
    let kept;
    await run((c) =>
      c.transaction(async (tx) => {
        kept = { tx, state: tx.state, kv: tx.kv };
      }),
    );

    const finished = "actor.state_transaction_finished";
    assert.equal(await codeOf(kept.kv.put("k", "v")), finished);
    assert.throws(() => kept.tx.state, { code: "state_transaction_finished" });
    assert.throws(() => {
      kept.state.n = 1;
    });
    assert.equal(await codeOf(kept.tx.schedule.list()), finished);
    assert.equal(await run((c) => c.state.n), 0);
  });
});

describe("while a transaction is open", () => {
  /** Opens one that ends when `end` says so. */
  function held(use) {
    const [begun, end] = [deferred(), deferred()];
    const ended = use.run((c) =>
      c.transaction(async (tx) => {
        await change(tx);
        begun.resolve();
        await end.promise;
      }),
    );
    return { begun: begun.promise, end, ended };
  }

  it("assigning to c.state throws, at any depth, and a synchronous statement too", async () => {
    const use = inside();
    const open = held(use);
    await open.begun;
    const conflicts = [
      (c) => {
        c.state.n = 7;
      },
      (c) => c.state.list.push(1),
      (c) => {
        delete c.state.deep.a;
      },
      (c) => {
        c.state = { n: 1 };
      },
    ];
    for (const body of conflicts) {
      assert.equal(await codeOf(use.run(body)), "actor.state_transaction_conflict");
    }
    assert.equal(await codeOf(use.run((c) => c.sql.exec("SELECT 1"))), "sqlite.transaction_open");
    assert.deepEqual(await use.run((c) => [c.state.n, c.state.deep]), [0, { a: 1 }]);

    open.end.resolve();
    await open.ended;
    await use.run((c) => {
      c.state.n += 10;
    });
    assert.deepEqual(await use.run((c) => [c.state.n, c.state.list, c.state.deep]), [
      11,
      ["x"],
      { a: 1 },
    ]);
  });

  it("what others change waits for its end, and is not part of it", async () => {
    for (const commits of [true, false]) {
      const use = inside();
      const open = held(use);
      await open.begun;
      assert.equal(await use.run((c) => c.kv.get("other")), null);
      let ends = 0;
      const outside = use.run(async (c) => {
        await Promise.all([
          c.kv.put("k", "outside").then(() => ends++),
          c.cron.every({ name: "c", interval: 90_000, action: "tick" }).then(() => ends++),
          c.db.execute("INSERT INTO t (a) VALUES ('outside')").then(() => ends++),
        ]);
        return [await c.kv.get("k"), (await c.cron.get("c")).interval, (await rows(c)).at(-1)];
      });
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(ends, 0);

      if (commits) open.end.resolve();
      else open.end.reject(new Error("no"));
      await open.ended.catch(() => {});
      assert.deepEqual(await outside, ["outside", 90_000, "outside"]);
      const expected = commits ? ["now", "later", "outside"] : ["outside"];
      assert.deepEqual(await use.run(rows), expected);
    }
  });

  it("another one waits its turn, in the order of the calls", async () => {
    const use = inside();
    const order = [];
    const one = (name) =>
      use.run((c) =>
        c.transaction(async (tx) => {
          order.push(`${name} begins`);
          const { n } = tx.state;
          await new Promise((resolve) => setTimeout(resolve, 5));
          tx.state.n = n + 1;
          order.push(`${name} ends`);
        }),
      );
    await Promise.all(["a", "b", "c"].map(one));

    assert.deepEqual(
      order,
      ["a", "b", "c"].flatMap((name) => [`${name} begins`, `${name} ends`]),
    );
    assert.equal(await use.run((c) => c.state.n), 3);
  });

  it("a part that changed unnoticed undoes it, and stays", async () => {
    const use = inside();
    const open = held(use);
    await open.begun;
    const outside = use.run((c) => void c.state.at.setTime(5));
    await new Promise((resolve) => setTimeout(resolve, 10));
    open.end.resolve();

    assert.equal(await codeOf(open.ended), "actor.state_transaction_conflict");
    await outside;
    assert.deepEqual(await use.run((c) => [c.state.n, c.state.at.getTime()]), [0, 5]);
  });

  it("a message that somebody else completes undoes it", async () => {
    const { run } = inside();
    const result = await run(async (c) => {
      const { id } = await c.queue.send("jobs", "first");
      const begun = deferred();
      const ended = c.transaction(async (tx) => {
        await tx.kv.put("k", "v");
        await tx.queue.complete({ id, name: "jobs" });
        begun.resolve();
        await new Promise((resolve) => setTimeout(resolve, 20));
      });
      await begun.promise;
      const completed = c.queue.complete({ id, name: "jobs" });
      return [await codeOf(ended), await completed, await c.kv.get("k")];
    });

    assert.deepEqual(result, ["queue.already_completed", true, null]);
  });
});

describe("a transaction whose function awaits nothing", () => {
  it("ends within its turn: nobody conflicts with it", async () => {
    const { run } = inside();
    const [first, second] = await run(async (c) => {
      const done = c.transaction((tx) => {
        tx.state.n += 1;
        tx.sql.exec("INSERT INTO t (a) VALUES (1)");
      });
      c.state.n += 10;
      const count = c.sql.exec("SELECT count(*) AS n FROM t").one().n;
      c.sql.exec("INSERT INTO t (a) VALUES (2)");
      await done;
      return [c.state.n, count];
    });

    assert.deepEqual([first, second], [11, 1]);
    assert.deepEqual(await run(rows), [1, 2]);
  });

  it("keeps what an author holds of the state part of it", async () => {
    const { run } = inside({ small: true });
    await run(async (c) => {
      const { state } = c;
      const { deep } = state;
      await c.transaction((tx) => {
        tx.state.deep.b = 2;
      });
      deep.c = 3;
      state.n = 4;
    });

    assert.deepEqual(await run((c) => [c.state.deep, c.state.n]), [{ a: 1, b: 2, c: 3 }, 4]);
  });
});

describe("the timeout of a transaction", () => {
  it("undoes it at once, and refuses what its function does later", async () => {
    const { run } = inside();
    const late = deferred();
    const error = await run((c) =>
      c
        .transaction(
          async (tx) => {
            await change(tx);
            await new Promise((resolve) => setTimeout(resolve, 80));
            late.resolve(await codeOf(tx.kv.put("k", "late")));
          },
          { timeout: 30 },
        )
        .catch(({ group, code, message }) => ({ group, code, message })),
    );

    assert.deepEqual([error.group, error.code], ["sqlite", "transaction_expired"]);
    assert.match(
      error.message,
      /expired after 30 ms.*safety backstop.*timeout.*nested transaction/,
    );
    assert.deepEqual(await run(seen), [0, 0, [], null, 0, 0]);
    assert.equal(await late.promise, "actor.state_transaction_finished");
  });

  it("says so when its function waited for what leaves with the commit", async () => {
    const { run, registry } = inside({ small: true });
    const other = registry.client().it.getOrCreate("other");
    void other;
    const error = await run((c) =>
      c
        .transaction(() => c.client().it.getOrCreate("other").tick(), { timeout: 30 })
        .catch(({ code, message }) => ({ code, message })),
    );

    assert.equal(error.code, "transaction_expired");
    assert.match(error.message, /leave after the commit: do not wait for them there/);
  });
});

describe("what a transaction lets out", () => {
  const told = actor({
    state: { heard: [] },
    actions: {
      tell: (c, what) => c.state.heard.push(what),
      heard: (c) => c.state.heard,
    },
  });
  const teller = actor({
    state: { n: 0 },
    actions: {
      async say(c, what, fails) {
        let call;
        const transaction = c.transaction(async (tx) => {
          tx.state.n += 1;
          call = c.client().told.getOrCreate("t").tell(what);
          call.catch(() => {});
          await new Promise((resolve) => setTimeout(resolve, 10));
          if (fails) throw new Error("no");
        });
        const ended = await transaction.catch((error) => error.message);
        return [
          ended ?? "committed",
          await call.then(
            () => "left",
            (error) => error.code,
          ),
        ];
      },
    },
  });

  it("leaves after its commit, and never when there is none", async () => {
    const client = inMemory({ told, teller }).client();
    const t = client.teller.getOrCreate("t");
    assert.deepEqual(await t.say("a", false), ["committed", "left"]);
    assert.deepEqual(await t.say("b", true), ["no", "transaction_rolled_back"]);
    assert.deepEqual(await client.told.getOrCreate("t").heard(), ["a"]);
  });
});

describe("c.db.transaction() with includeState", () => {
  it("commits c.state with its statements, or neither", async () => {
    const { run } = inside();
    const include = { experimental: { includeState: true } };
    const failed = await run((c) =>
      c.db
        .transaction(async (tx) => {
          c.state.n = 7;
          await tx.execute("INSERT INTO t (a) VALUES (7)");
          throw new Error("no");
        }, include)
        .catch((error) => [error.message, c.state.n]),
    );
    const conflict = await run(async (c) => {
      const done = c.db.transaction(async (tx) => {
        await tx.execute("INSERT INTO t (a) VALUES (8)");
        c.state.n = 8;
      }, include);
      const thrown = await codeOf(
        (async () => {
          c.state.n = 9;
        })(),
      );
      await done;
      return thrown;
    });

    assert.deepEqual(failed, ["no", 0]);
    assert.equal(conflict, "actor.state_transaction_conflict");
    assert.deepEqual(await run(async (c) => [c.state.n, await rows(c)]), [8, [8]]);
    const unknown = { experimental: { other: true } };
    assert.match(
      await run((c) => c.db.transaction(() => 1, unknown).catch((error) => error.message)),
      /unknown key "other" of experimental of options of db\.transaction\(\)/,
    );
  });
});

describe("a transaction at the end of its actor", () => {
  for (const how of ["sleep", "destroy"]) {
    it(`is rolled back when its function does not end in the grace period of a ${how}`, async () => {
      const use = inside({ options: { sleepGracePeriod: 50 } });
      const begun = deferred();
      const ended = use.run((c) =>
        c.transaction(
          async (tx) => {
            await change(tx);
            c[how]();
            begun.resolve();
            await new Promise(() => {});
          },
          { timeout: 60_000 },
        ),
      );
      ended.catch(() => {});
      await begun.promise;
      await assert.rejects(ended);

      await until(async () => {
        const found = await use.run(seen).catch(() => undefined);
        return found !== undefined && JSON.stringify(found) === "[0,0,[],null,0,0]";
      }, "the actor is back without it");
    });
  }
});

describe("a commit of a transaction that fails", () => {
  for (const small of [true, false]) {
    it(`ends the generation and leaves nothing of it, ${small ? "without" : "with"} statements`, async (t) => {
      const runtime = testRuntimeOf(t);
      const { run } = inside({ small }, (use) => runtime(use));
      await run((c) => {
        c.state.n = 1;
      });
      await runtime.started.failNextCommit();
      const failed = await run((c) =>
        c.transaction(async (tx) => {
          tx.state.n = 99;
          await tx.kv.put("k", "v");
          if (!small) tx.sql.exec("INSERT INTO t (a) VALUES (9)");
        }),
      ).catch((error) => `${error.group}.${error.code}`);

      assert.equal(failed, "storage.full");
      assert.deepEqual(await run(async (c) => [c.state.n, await c.kv.get("k")]), [1, null]);
      if (!small) assert.deepEqual(await run(rows), []);
    });
  }

  /** Opens a test runtime that is closed after the test. */
  function testRuntimeOf(t) {
    const open = (use) => {
      open.started = testRuntime({ use, logging: { level: "silent" } });
      t.after(() => open.started.close());
      return { client: () => open.started.client };
    };
    return open;
  }
});
