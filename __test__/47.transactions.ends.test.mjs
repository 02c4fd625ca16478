// The ends of c.transaction: its timeout, what leaves with it, and those that nobody asked for.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { testRuntime } from "../dist/testing.js";
import { deferred, inMemory, until } from "./support/registry.mjs";
import { change, codeOf, inside, rows, seen } from "./support/transactions.mjs";

describe("the timeout of a transaction", () => {
  it("undoes it at once, and refuses what its function does later", async () => {
    const { run } = inside();
    const [late, go] = [deferred(), deferred()];
    const error = await run((c) =>
      c
        .transaction(
          async (tx) => {
            await change(tx);
            await go.promise;
            late.resolve(await codeOf(tx.kv.put("k", "late")));
          },
          { timeout: 500 },
        )
        .catch(({ group, code, message }) => ({ group, code, message })),
    );

    assert.deepEqual([error.group, error.code], ["sqlite", "transaction_expired"]);
    assert.match(
      error.message,
      /expired after 500 ms.*safety backstop.*timeout.*nested transaction/,
    );
    assert.deepEqual(await run(seen), [0, 0, [], null, 0, 0]);
    go.resolve();
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
  it("ends the generation and leaves nothing of it", async (t) => {
    let runtime;
    const { run } = inside({ small: true }, (use) => {
      runtime = testRuntime({ use, logging: { level: "silent" } });
      t.after(() => runtime.close());
      return { client: () => runtime.client };
    });
    await run((c) => {
      c.state.n = 1;
    });
    await runtime.failNextCommit();
    const failed = await codeOf(
      run((c) =>
        c.transaction(async (tx) => {
          tx.state.n = 99;
          await tx.kv.put("k", "v");
          await tx.queue.send("jobs", 1);
        }),
      ),
    );

    assert.equal(failed, "storage.full");
    assert.deepEqual(await run(async (c) => [c.state.n, await c.kv.get("k")]), [1, null]);
    assert.equal(await run((c) => c.queue.tryNext()), undefined);
  });

  it("because of a constraint leaves nothing of it either", async () => {
    const { run } = inside();
    const reference = "REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED";
    await run(async (c) => {
      c.state.n = 1;
      await c.db.execute(`CREATE TABLE child (parent ${reference})`);
    });
    const failed = run(async (c) => {
      await c.db.execute("PRAGMA foreign_keys = ON");
      await c.transaction(async (tx) => {
        tx.state.n = 99;
        await tx.kv.put("k", "v");
        tx.sql.exec("INSERT INTO child VALUES (5)");
      });
    });

    await assert.rejects(failed);
    const left = await run(async (c) => [
      c.state.n,
      await c.kv.get("k"),
      c.sql.exec("SELECT count(*) AS n FROM child").one().n,
    ]);
    assert.deepEqual(left, [1, null, 0]);
  });
});
