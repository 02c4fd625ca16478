// Actors that call each other, and many that are made at once.

import { actor, event, queue, UserError } from "rivetkit";

import { note } from "./notes.mjs";

const counter = actor({
  createState: (c, input) => {
    note(c, "createState");
    return { n: input?.from ?? 0 };
  },
  events: { counted: event() },
  queues: { add: queue() },
  async run(c) {
    for await (const message of c.queue.iter({ names: ["add"], completable: true })) {
      c.state.n += message.body;
      await message.complete(c.state.n);
    }
  },
  onRequest: (c) => Response.json({ n: c.state.n }),
  actions: {
    add(c, by) {
      c.state.n += by;
      c.broadcast("counted", c.state.n);
      return c.state.n;
    },
    get: (c) => c.state.n,
    refuse() {
      throw new UserError("no", { code: "no", metadata: { why: "so" } });
    },
    fail() {
      throw new Error("a secret");
    },
  },
});

const manager = actor({
  state: { heard: [] },
  actions: {
    addTo: (c, key, by) => c.client().counter.getOrCreate(key).add(by),
    async make(c, key, from) {
      const made = await c.client().counter.create(key, { input: { from } });
      return { n: await made.get(), id: await made.resolve() };
    },
    missing: (c, key) =>
      c
        .client()
        .counter.get(key)
        .get()
        .then(
          () => "found",
          (error) => `${error.group}.${error.code}`,
        ),
    refused: (c, key) =>
      c
        .client()
        .counter.getOrCreate(key)
        .refuse()
        .then(
          () => "fine",
          (error) => [error.group, error.code, error.message, error.metadata],
        ),
    pass: (c, key) => c.client().counter.getOrCreate(key).refuse(),
    failed: (c, key) =>
      c
        .client()
        .counter.getOrCreate(key)
        .fail()
        .then(
          () => "fine",
          (error) => [error.group, error.code],
        ),
    send: (c, key, by) =>
      c.client().counter.getOrCreate(key).send("add", by, { wait: true, timeout: 5_000 }),
    async ask(c, key) {
      return (await c.client().counter.getOrCreate(key).fetch("n")).json();
    },
    /** Hears an event of another actor over a connection to it. */
    async listen(c, key) {
      const conn = c.client().counter.getOrCreate(key).connect();
      const heard = new Promise((resolve) => conn.on("counted", resolve));
      await conn.add(1);
      await conn.add(1);
      const first = await heard;
      await conn.dispose();
      return first;
    },
    async many(c, prefix, count) {
      const client = c.client();
      const all = Array.from({ length: count }, (_, n) =>
        client.counter.getOrCreate([...prefix, `${n}`]).add(n),
      );
      return (await Promise.all(all)).reduce((sum, n) => sum + n, 0);
    },
    /** Calls itself through others until nothing is left. */
    down: (c, left) =>
      left === 0
        ? 0
        : c
            .client()
            .manager.getOrCreate([...c.key.slice(0, 2), `${left}`])
            .down(left - 1)
            .then((n) => n + 1),
    self: (c) => c.client().manager.getForId(c.actorId).own(),
    own: (c) => c.key,
  },
});

export const actors = { counter, manager };
