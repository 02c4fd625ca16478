// c.transaction among everything else that an actor does with its file, on a disk.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { UserError } from "../dist/index.js";
import { inFolder, newFolder } from "./support/registry.mjs";
import { codeOf, inside } from "./support/transactions.mjs";

const add = (sql, n) => [sql, `n${n}`];
const INSERT = "INSERT INTO t (a) VALUES (?)";

/** What each kind of call does, and how many rows it adds. */
const kinds = {
  whole: (c, n) =>
    c.transaction((tx) => {
      tx.state.n += 1;
      tx.sql.exec(...add(INSERT, n));
    }),
  spanning: (c, n) =>
    c.transaction(async (tx) => {
      tx.state.n += 1;
      await tx.db.execute(...add(INSERT, n));
      await tx.queue.send("jobs", n);
    }),
  undone: (c, n) =>
    c.transaction(async (tx) => {
      tx.state.n += 1;
      tx.sql.exec(...add(INSERT, n));
      throw new UserError("no", { code: "undone" });
    }),
  turn(c, n) {
    c.sql.exec(...add(INSERT, n));
    c.state.n += 1;
  },
  other: (c, n) => c.db.transaction((tx) => tx.execute(...add(INSERT, n))),
  kv: (c, n) => c.kv.put(`k${n}`, "v"),
  receive: async (c) => {
    await (await c.queue.tryNext({ completable: true }))?.complete();
  },
};

/** Those that a call may meet: somebody else has the state, or the file; and its own. */
const visible = ["actor.state_transaction_conflict", "sqlite.transaction_open", "user.undone"];

describe("many transactions among other calls", () => {
  for (const durability of ["reply", "interval"]) {
    it(`all end, whole or not at all, with durability ${durability}`, async () => {
      const folder = await newFolder();
      const { run } = inside({ options: { durability } }, (use) => inFolder(folder, use));
      const names = Object.keys(kinds);
      const done = Object.fromEntries(names.map((name) => [name, 0]));
      for (let round = 0; round < 15; round += 1) {
        const calls = names.flatMap((_, at) =>
          [0, 1, 2, 3].map(async (again) => {
            const name = names[(at * 3 + again * 5 + round) % names.length];
            const n = (round * names.length + at) * 4 + again;
            const ended = run((c) => kinds[name](c, n));
            if (
              await ended.then(
                () => true,
                () => false,
              )
            )
              done[name] += 1;
            else assert(visible.includes(await codeOf(ended)), await codeOf(ended));
          }),
        );
        await Promise.all(calls);
      }
      const { whole, spanning, turn, other, kv, undone } = done;
      const seen = await run(async (c) => [
        c.state.n,
        c.sql.exec("SELECT count(*) AS n FROM t").one().n,
        (await c.kv.list("k")).length,
      ]);

      assert.deepEqual(seen, [whole + spanning + turn, whole + spanning + turn + other, kv]);
      assert.equal(undone, 0);
      assert(spanning > 20 && other > 20 && kv > 20, JSON.stringify(done));
    });
  }
});
