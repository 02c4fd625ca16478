// An actor to look into, and one that says who may send to its queues.

import { actor, event, queue } from "rivetkit";
import { db } from "rivetkit/db";
import { workflow } from "rivetkit/workflow";

const glass = actor({
  state: { n: 1 },
  events: { seen: event() },
  queues: { jobs: queue() },
  db: db({
    onMigrate: async (access) => {
      await access.execute("CREATE TABLE IF NOT EXISTS things (id INTEGER PRIMARY KEY, name TEXT)");
      await access.execute("INSERT INTO things (name) VALUES ('one')");
    },
  }),
  run: workflow(async (ctx) => {
    await ctx.step("look", () => "looked");
  }),
  actions: {
    add: (c, by) => {
      c.state.n += by;
      return c.state.n;
    },
    get: (c) => c.state.n,
  },
});

const locked = actor({
  createConnState: (_c, params) => ({ role: params?.role ?? "guest" }),
  events: { news: event({ canSubscribe: (c) => c.conn.state.role === "admin" }) },
  queues: {
    open: queue(),
    admin: queue({ canPublish: (c) => c.conn.state.role === "admin" }),
    shut: queue({ canPublish: () => false }),
  },
  async run(c) {
    for await (const message of c.queue.iter({ completable: true })) await message.complete("done");
  },
  actions: { tell: (c, text) => c.broadcast("news", text) },
});

export const actors = { glass, locked };
