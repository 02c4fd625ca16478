// What the tests of transactions share.

import assert from "node:assert/strict";

import { db } from "../../dist/db/index.js";
import { actor, queue } from "../../dist/index.js";
import { inMemory } from "./registry.mjs";

const migrations = [{ version: 1, sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, a)" }];

/** `run(body)` calls `body(c)` as an action of one actor; `small` has no file, and none of SQL. */
export function inside({ small = false, options = {} } = {}, registry = inMemory) {
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

export const codeOf = (promise) =>
  Promise.resolve(promise).then(
    (value) => assert.fail(`it gave ${JSON.stringify(value)}`),
    (error) => `${error.group}.${error.code}`,
  );

export const rows = (c) =>
  c.db.execute("SELECT a FROM t ORDER BY id").then((all) => all.map(({ a }) => a));

/** Something of everything. */
export async function change(tx, message) {
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

export const seen = async (c) => [
  c.state.n,
  c.state.list.length,
  await rows(c),
  await c.kv.get("k"),
  (await c.schedule.list()).length,
  (await c.cron.list()).length,
];
