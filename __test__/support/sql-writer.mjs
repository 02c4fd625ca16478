// The process that a test kills: sql-writer.mjs FOLDER LEAST.
//
// First it checks that the actor has at least LEAST turns, each whole: as many rows from c.sql as
// its state says, and from c.db the last one, or the one before where the kill came between; and
// every acknowledged one of those that nobody awaited. Then it writes until it is killed, telling
// each acknowledged turn.

import assert from "node:assert/strict";
import { writeSync } from "node:fs";
import { db } from "../../dist/db/index.js";
import { actor, setup } from "../../dist/index.js";

const [folder, least] = process.argv.slice(2);
const writer = actor({
  state: { n: 0 },
  db: db(),
  migrations: [
    { version: 1, sql: "CREATE TABLE turns (n INTEGER PRIMARY KEY); CREATE TABLE queued (n)" },
    { version: 2, sql: "CREATE TABLE loose (n)" },
  ],
  actions: {
    async add(c) {
      c.state.n += 1;
      const { n } = c.state;
      c.sql.exec("INSERT INTO turns VALUES (?)", n);
      await c.db.transaction((tx) => tx.execute("INSERT INTO queued VALUES (?)", n));
      c.db.execute("INSERT INTO loose VALUES (?)", n).catch(() => {});
      return n;
    },
    counts: (c) => [
      c.state.n,
      c.sql.exec("SELECT count(*) AS n FROM turns").one().n,
      c.sql.exec("SELECT coalesce(max(n), 0) AS n FROM queued").one().n,
      c.sql.exec("SELECT coalesce(max(n), 0) AS n FROM loose").one().n,
    ],
  },
});

const handle = setup({ use: { writer }, storage: folder, logging: { level: "silent" } })
  .client()
  .writer.getOrCreate("a");
const [state, turns, queued, loose] = await handle.counts();
assert.equal(turns, state, "rows of a turn and its state");
assert(queued === state || queued === state - 1, `${queued} queued last of ${state}`);
assert(queued >= Number(least), `${queued} of ${least} acknowledged`);
assert(loose >= Number(least), `${loose} not awaited of ${least} acknowledged`);
writeSync(1, `${Math.min(queued, loose)}\n`);
for (;;) writeSync(1, `${await handle.add()}\n`);
