// The process that a test kills: transaction-writer.mjs FOLDER LEAST KIND.
//
// First it checks that of its actor every transaction is there whole or not at all: as many as the
// state says in the keys, the rows, the messages that one completed and the next one sent, and the
// schedules; and at least LEAST. Then it goes on until it is killed, telling each acknowledged one.
// KIND `small` is an actor without SQL, which stays in the shared store.

import assert from "node:assert/strict";
import { writeSync } from "node:fs";
import { db } from "../../dist/db/index.js";
import { actor, queue, setup } from "../../dist/index.js";

const [folder, least, kind] = process.argv.slice(2);
const small = kind === "small";
const declared = {
  db: db(),
  migrations: [{ version: 1, sql: "CREATE TABLE done (n INTEGER PRIMARY KEY)" }],
};
const writer = actor({
  state: { n: 0 },
  queues: { jobs: queue() },
  options: { maxSchedules: 100_000 },
  ...(small ? {} : declared),
  actions: {
    tick: () => {},
    async step(c) {
      // The message of the one before; the first one has none.
      const message = await c.queue.tryNext({ completable: true });
      return c.transaction(async (tx) => {
        tx.state.n += 1;
        const { n } = tx.state;
        assert.equal(message?.body ?? 0, n - 1, "the message of another one");
        if (message !== undefined) await tx.queue.complete(message);
        await tx.queue.send("jobs", n);
        if (n % 3 === 0) await null;
        await tx.kv.put(`k${n}`, String(n));
        if (!small) {
          tx.sql.exec("INSERT INTO done VALUES (?)", n);
          if (n % 2 === 0) await tx.db.execute("UPDATE done SET n = n WHERE n = ?", n);
        }
        await tx.schedule.after(3_600_000_000, { action: "tick", key: `s${n}` });
        return n;
      });
    },
    async counts(c) {
      const { n } = c.state;
      const message = await c.queue.tryNext({ completable: true });
      await message?.nack({ delay: 0 });
      return {
        n,
        keys: (await c.kv.list("k")).length,
        rows: small ? n : c.sql.exec("SELECT count(*) AS n FROM done").one().n,
        sent: message?.body ?? 0,
        schedules: (await c.schedule.list()).length,
      };
    },
  },
});

const handle = setup({ use: { writer }, storage: folder, logging: { level: "silent" } })
  .client()
  .writer.getOrCreate("a");
const found = await handle.counts();
const { n } = found;
assert.deepEqual(found, { n, keys: n, rows: n, sent: n, schedules: n });
assert(n >= Number(least), `${n} of ${least} acknowledged`);
writeSync(1, `${n}\n`);
for (;;) writeSync(1, `${await handle.step()}\n`);
