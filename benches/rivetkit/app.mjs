// The application of the comparison, written for RivetKit and for nothing else.

import { actor, setup } from "rivetkit";
import { db } from "rivetkit/db";

const HOUR_MS = 3_600_000;

const options = { sleepTimeout: HOUR_MS, actionTimeout: 600_000 };

const counter = actor({
  state: { count: 0 },
  actions: {
    increment: (c) => ++c.state.count,
    async incrementDurable(c) {
      c.state.count += 1;
      await c.saveState({ immediate: true });
      return c.state.count;
    },
    goSleep: (c) => c.sleep(),
    emit(c, times) {
      for (let i = 0; i < times; i++) c.broadcast("told", i);
      return times;
    },
  },
  options,
});

const table = actor({
  db: db({
    onMigrate: (sql) =>
      sql.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, v TEXT)"),
  }),
  actions: {
    insert: (c, value) => c.db.execute("INSERT INTO t (v) VALUES (?)", value),
    async insertMany(c, times, value) {
      for (let i = 0; i < times; i++) await c.db.execute("INSERT INTO t (v) VALUES (?)", value);
      return times;
    },
  },
  options,
});

export const registry = setup({ use: { counter, table }, noWelcome: true, startServices: false });
registry.start();
