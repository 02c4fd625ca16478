// SQL on an actor's own file.

import { monitorEventLoopDelay } from "node:perf_hooks";

import { actor, setup } from "greenroom";
import { db } from "greenroom/db";
import { pause, rateRow, timed } from "../measure.mjs";
import { betterSqlite, plainSync } from "../references.mjs";
import { atLeast, atLeastOrPart, atMost, partOfReference } from "../table.mjs";

const ROWS = 10_000;
const PICK = "SELECT b FROM t WHERE id = ?";
const ADD = "INSERT INTO t (b) VALUES (?)";
/** Rows that one turn inserts: a commit for each batch of them. */
const IN_ONE_TURN = 5_000;
/** How many new actors are in flight, and how many there are. */
const [LANES, NEW_ACTORS] = [32, 1_000];

const table = actor({
  db: db(),
  migrations: [{ version: 1, sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT)" }],
  actions: {
    fill(c) {
      for (let i = 0; i < ROWS; i++) c.sql.exec(ADD, `row ${i}`);
    },
    insertEach: async (c, count) => {
      for (let i = 0; i < count; i++) await c.db.execute(ADD, "a row of some length");
    },
    selectEach: async (c, count) => {
      for (let i = 0; i < count; i++) await c.db.execute(PICK, 1 + (i % ROWS));
    },
    selectInTurn(c, count) {
      for (let i = 0; i < count; i++) c.sql.exec(PICK, 1 + (i % ROWS)).one();
    },
    insertInTurn(c, count) {
      for (let i = 0; i < count; i++) c.sql.exec(ADD, "a row of some length");
    },
  },
  options: { actionTimeout: 600_000 },
});

const first = actor({
  db: db(),
  migrations: [{ version: 1, sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT)" }],
  actions: { add: (c) => void c.sql.exec(ADD, "first") },
});

export default async function* sql(run) {
  const registry = setup({
    use: { table, first },
    storage: run.folder(),
    logging: { level: "silent" },
  });
  const client = registry.client();
  const handle = client.table.getOrCreate("bench");
  await handle.fill();
  const better = await betterSqlite(run.folder(), ROWS);
  const turns = async (count) => {
    for (let left = count; left > 0; left -= IN_ONE_TURN) {
      await handle.insertInTurn(Math.min(left, IN_ONE_TURN));
    }
  };
  for (const { work, operations, body, reference, target } of [
    {
      work: "c.db INSERT, awaited one by one, each its own durable commit",
      operations: 1_000,
      body: (n) => handle.insertEach(n),
      reference: better.insertEach,
      target: partOfReference(1 / 1.3),
    },
    {
      work: "c.db SELECT by primary key, awaited one by one",
      operations: 20_000,
      body: (n) => handle.selectEach(n),
      reference: better.select,
      target: atLeast(40_000),
    },
    {
      work: "c.sql SELECT by primary key",
      operations: 100_000,
      body: (n) => handle.selectInTurn(n),
      reference: better.select,
      target: atLeastOrPart(150_000, 0.7),
    },
    {
      work: `c.sql INSERT, ${IN_ONE_TURN} in one turn`,
      operations: 100_000,
      body: turns,
      reference: better.insertTogether,
      target: atLeast(250_000),
    },
  ]) {
    yield await rateRow(run, { work, operations, body, reference, target });
  }
  better.close();
  yield* newActors(run, client);
  await registry.shutdown();
}

/** Actors that declare a table, made and written to for the first time. */
async function* newActors(run, client) {
  const reference = plainSync(run.folder());
  const count = run.scaled(NEW_ACTORS);
  const [samples, references, pauses, idle] = [[], [], [], []];
  for (let repetition = 0; repetition < Math.min(run.repetitions, 3); repetition++) {
    let next = 0;
    const lane = async () => {
      while (next < count) await client.first.getOrCreate(`${repetition}-${next++}`).add();
    };
    idle.push(await longestPause(() => pause(200)));
    const made = timed.bind(undefined, () => Promise.all(Array.from({ length: LANES }, lane)));
    pauses.push(await longestPause(async () => samples.push(await made())));
    references.push(await timed(() => reference.body(count)));
  }
  const work = `${NEW_ACTORS} new actors with a table, first row included, ${LANES} in flight`;
  yield {
    work,
    unit: "ms",
    samples,
    reference: { what: `as many times ${reference.what}`, unit: "ms", samples: references },
    target: atMost("ms", 4_000, "4 s"),
  };
  yield {
    work: "longest pause of the event loop meanwhile",
    unit: "ms",
    samples: pauses,
    reference: { what: "an idle loop", unit: "ms", samples: idle },
    target: atMost("ms", 20),
  };
}

/** How long the event loop stood still at the longest while `body` ran, in milliseconds. */
async function longestPause(body) {
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  await body();
  loop.disable();
  return loop.max / 1e6;
}
