// The actors that the peers have, in a process of their own: `node app.mjs FOLDER`. Tells its parent the
// URL once it listens.

import { actor, event, setup } from "greenroom";
import { db } from "greenroom/db";

const timeouts = { sleepTimeout: 3_600_000, actionTimeout: 600_000 };

/** By how much each scheduled run was late, in milliseconds. */
const fires = [];
let wakes = 0;

const counter = actor({
  state: { count: 0 },
  events: { msg: event() },
  // As the others have it: what changed is stored at intervals, unless an action waits for it.
  options: { ...timeouts, durability: "interval" },
  onWake: () => {
    wakes += 1;
  },
  actions: {
    increment(c) {
      c.state.count += 1;
      return c.state.count;
    },
    async incrementDurable(c) {
      c.state.count += 1;
      const { count } = c.state;
      await c.saveState({ immediate: true });
      return count;
    },
    goSleep: (c) => c.sleep(),
    emit(c, times, at, text) {
      for (let i = 0; i < times; i++) c.broadcast("msg", at, text);
      return times;
    },
    async scheduleMany(c, due, times) {
      for (let i = 0; i < times; i++) await c.schedule.at(due, "onFire", due);
      return times;
    },
    onFire: (_c, due) => {
      fires.push(Date.now() - due);
    },
    takeFires: () => fires.splice(0),
    wakeCount: () => wakes,
  },
});

const table = actor({
  db: db({
    onMigrate: (db) =>
      db.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, v TEXT NOT NULL)"),
  }),
  options: timeouts,
  actions: {
    insert1: async (c, value) => {
      await c.db.execute("INSERT INTO t (v) VALUES (?)", value);
    },
    async insertMany(c, times, value) {
      for (let i = 0; i < times; i++) await c.db.execute("INSERT INTO t (v) VALUES (?)", value);
      return times;
    },
    /** All of them durable together, before the reply. */
    insertInTurn(c, times, value) {
      for (let i = 0; i < times; i++) c.sql.exec("INSERT INTO t (v) VALUES (?)", value);
      return times;
    },
    async selectMany(c, times, ids) {
      let found = 0;
      for (let i = 0; i < times; i++) {
        const rows = await c.db.execute("SELECT v FROM t WHERE id = ?", 1 + (i % ids));
        found += rows.length;
      }
      return found;
    },
    /** Without leaving the thread. */
    selectInTurn(c, times, ids) {
      let found = 0;
      for (let i = 0; i < times; i++) {
        found += c.sql.exec("SELECT v FROM t WHERE id = ?", 1 + (i % ids)).toArray().length;
      }
      return found;
    },
  },
});

const registry = setup({ use: { counter, table }, storage: process.argv[2] });
const { url } = await registry.listen({ port: 0 });
process.send(url);
process.on("disconnect", () => process.exit(0));
