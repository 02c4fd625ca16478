// The process that the crash test of what actors hold kills: holdings-writer.mjs FOLDER EXPECTED SEED.
//
// First it waits until what its predecessors left has been worked off, and checks all that was
// acknowledged to them; then it goes on until it is killed. New actors come all the time, so that
// kills fall into their moves to files of their own.
//
// 1. A line goes out with a blocking write, and only after the promise it tells of has resolved.
// 2. Exit code 1 with the reason on stderr means that something was lost, doubled or half there.

import assert from "node:assert/strict";
import { readFileSync, writeSync } from "node:fs";
import { actor, queue, setup } from "greenroom";
import { db } from "greenroom/db";
import { chance } from "./chance.mjs";

const LANES = 8;
const ACTORS_AT_ONCE = 6;
/** How many operations are followed by an actor that takes the place of another. */
const NEW_SHARE = 0.04;
const SLEEP_SHARE = 0.05;
/** What is left is worked off within this time; else it is forgotten. */
const SETTLED_WITHIN_MS = 30_000;

const [folder, expectedFile, seed] = process.argv.slice(2);
const random = chance(Number(seed));
const tell = (...words) => writeSync(1, `${words.join(" ")}\n`);

const holder = actor({
  state: { noted: 0, moved: 0, done: [], fired: [], tried: [] },
  db: db(),
  queues: { job: queue() },
  onWake(c) {
    c.sql.exec("CREATE TABLE IF NOT EXISTS notes (n INTEGER PRIMARY KEY)");
    c.sql.exec("CREATE TABLE IF NOT EXISTS moves (n INTEGER PRIMARY KEY)");
    c.sql.exec("CREATE TABLE IF NOT EXISTS marks (at INTEGER PRIMARY KEY, n INTEGER)");
    c.sql.exec("CREATE TABLE IF NOT EXISTS done (body TEXT)");
  },
  async run(c) {
    for await (const message of c.queue.iter({ completable: true })) {
      // One turn: it is done, in both places, and completed.
      c.state.done.push(message.body);
      c.sql.exec("INSERT INTO done (body) VALUES (?)", message.body);
      void message.complete();
    }
  },
  actions: {
    /** One turn. */
    note(c, n) {
      c.state.noted = n;
      c.sql.exec("INSERT INTO notes (n) VALUES (?)", n);
      void c.kv.put("noted", String(n));
    },
    /** A statement by itself, and what is there then. */
    async mark(c, n) {
      await c.db.execute("INSERT INTO marks (n) VALUES (?)", n);
      return await c.db.execute("SELECT n FROM marks ORDER BY at");
    },
    /** One transaction over many turns. */
    move: (c, n) =>
      c.transaction(async (tx) => {
        await tx.db.execute("INSERT INTO moves (n) VALUES (?)", n);
        await tx.kv.put("moved", String(n));
        tx.state.moved = n;
        await tx.queue.send("job", `move ${n}`);
        await tx.schedule.after(0, {
          action: "try",
          args: [`move ${n}`],
          retry: { maxAttempts: 50 },
        });
      }),
    async plan(c, word) {
      await Promise.all([
        c.schedule.after(0, "fire", word),
        c.schedule.after(0, { action: "try", args: [word], retry: { maxAttempts: 50 } }),
      ]);
    },
    async holdings(c) {
      const { noted, moved, done, fired, tried } = c.state;
      const column = (sql) => [...c.sql.exec(sql).raw()].flat();
      return {
        noted,
        moved,
        done: [...done],
        fired: [...fired],
        tried: [...tried],
        notes: column("SELECT n FROM notes ORDER BY n"),
        moves: column("SELECT n FROM moves ORDER BY n"),
        marks: column("SELECT n FROM marks ORDER BY at"),
        doneRows: column("SELECT body FROM done ORDER BY rowid"),
        kv: [await c.kv.get("noted"), await c.kv.get("moved")],
        pending: (await c.schedule.list()).length,
        dead: (await c.schedule.dead.list()).map(({ action, args }) => `${action} ${args[0]}`),
      };
    },
    rest(c) {
      try {
        c.sleep();
      } catch (error) {
        // Somebody else has asked already.
        if (error.code !== "stopping") throw error;
      }
    },
  },
  internalActions: {
    // In its turn, as an assignment to `c.state` beside a transaction would fail.
    fire: (c, word) => c.transaction((tx) => void tx.state.fired.push(word)),
    try: (c, word) => void c.state.tried.push(word),
  },
});

const registry = setup({ use: { holder }, storage: folder });
const client = registry.client();
const unique = (words) => new Set(words).size === words.length;
const upTo = (n) => Array.from({ length: n }, (_, at) => at + 1);

/** Waits until an actor has worked off what is acknowledged of it, and checks it. */
async function check(key, { note, move, mark, jobs, plans }) {
  const handle = client.holder.get(key);
  const end = Date.now() + SETTLED_WITHIN_MS;
  let held;
  let forgotten;
  for (;;) {
    held = await handle.holdings();
    const ends = new Set([...held.fired, ...held.dead.map((each) => each.replace("fire ", ""))]);
    forgotten = {
      jobs: [...jobs, ...upTo(held.moved).map((n) => `move ${n}`)].filter(
        (body) => !held.done.includes(body),
      ),
      // At most once: it ran, or is on record as interrupted.
      fired: plans.filter((word) => !ends.has(word)),
      // At least once.
      tried: [...plans, ...upTo(held.moved).map((n) => `move ${n}`)].filter(
        (word) => !held.tried.includes(word),
      ),
    };
    if (held.pending === 0 && Object.values(forgotten).every(({ length }) => length === 0)) break;
    if (Date.now() > end)
      assert.fail(`forgotten by ${key}: ${JSON.stringify({ forgotten, held })}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const shown = `${key}: ${JSON.stringify(held)}`;
  assert([note, note + 1].includes(held.noted), `note ${note} was acknowledged, ${shown}`);
  assert([move, move + 1].includes(held.moved), `move ${move} was acknowledged, ${shown}`);
  // Half of a turn or of a transaction is never there.
  assert.deepEqual(held.notes, upTo(held.noted), shown);
  assert.deepEqual(held.moves, upTo(held.moved), shown);
  assert([mark, mark + 1].includes(held.marks.length), `mark ${mark} was acknowledged, ${shown}`);
  assert.deepEqual(held.marks, upTo(held.marks.length), shown);
  const kept = (n) => (n === 0 ? null : String(n));
  assert.deepEqual(held.kv, [kept(held.noted), kept(held.moved)], shown);
  assert.deepEqual(held.doneRows, held.done, shown);
  assert(unique(held.done), `a completed message came again, ${shown}`);
  assert(unique(held.fired), `a one-shot ran twice, ${shown}`);
  return held;
}

/** Works with an actor of its own for ever, and with a new one now and then. */
async function work(lane) {
  let made = 0;
  let ops = 0;
  let key;
  let handle;
  let [note, move, mark] = [0, 0, 0];
  for (;;) {
    if (key === undefined || random() < NEW_SHARE) {
      key = `${seed}-${lane}-${made++}`;
      handle = client.holder.getOrCreate(key);
      [note, move, mark] = [0, 0, 0];
      tell("begun", key);
    }
    const kind = Math.floor(random() * 5);
    const word = `${lane}-${ops++}`;
    if (kind === 0) {
      await handle.note(note + 1);
      note += 1;
      tell("note", key, note);
    } else if (kind === 1) {
      await handle.move(move + 1);
      move += 1;
      tell("move", key, move);
    } else if (kind === 2) {
      const there = await handle.mark(mark + 1);
      mark += 1;
      assert.deepEqual(
        there.map(({ n }) => n),
        upTo(mark),
        key,
      );
      tell("mark", key, mark);
    } else if (kind === 3) {
      await handle.send("job", word);
      tell("job", key, word);
    } else {
      await handle.plan(word);
      tell("plan", key, word);
    }
    if (random() < SLEEP_SHARE) await handle.rest();
  }
}

const expected = Object.entries(JSON.parse(readFileSync(expectedFile, "utf8")));
for (let at = 0; at < expected.length; at += ACTORS_AT_ONCE) {
  const some = expected.slice(at, at + ACTORS_AT_ONCE);
  await Promise.all(some.map(([key, acknowledged]) => check(key, acknowledged)));
}
tell("checked");
await Promise.all(Array.from({ length: LANES }, (_, lane) => work(lane)));
