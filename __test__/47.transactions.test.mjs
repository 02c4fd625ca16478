// c.transaction: what a function changes over several turns, all or nothing.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { deferred } from "./support/registry.mjs";
import { change, codeOf, inside, rows, seen } from "./support/transactions.mjs";

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

  it("is durable with durability interval too, whose saves wait for it", async () => {
    const { run } = inside({ options: { durability: "interval", stateSaveInterval: 5 } });
    await run(async (c) => {
      c.state.n = 1;
      await c.transaction(async (tx) => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        await change(tx);
      });
      c.state.n += 1;
      await c.saveState({ immediate: true });
    });

    assert.deepEqual(await run(seen), [3, 1, ["now", "later"], "v", 1, 1]);
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
