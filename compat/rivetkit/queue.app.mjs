// Queues: an actor that takes when it is asked to, and one that works through them as it runs.

import { actor, queue } from "rivetkit";

import { noted } from "./notes.mjs";

const told = (error) => `${error.group}.${error.code}`;
const view = (message) => message && { name: message.name, body: message.body };

const shelf = actor({
  ...noted,
  queues: { jobs: queue(), other: queue() },
  options: { maxQueueSize: 5, maxQueueMessageSize: 2_000, sleepTimeout: 60_000 },
  createVars: () => ({ open: undefined }),
  actions: {
    put: async (c, name, body) => view(await c.queue.send(name, body)),
    next: async (c, options) => view(await c.queue.next(options)),
    nextBatch: async (c, options) => (await c.queue.nextBatch(options)).map(view),
    tryNext: async (c, options) => view(await c.queue.tryNext(options)),
    tryNextBatch: async (c, options) => (await c.queue.tryNextBatch(options)).map(view),
    waitForNames: async (c, names, options) => view(await c.queue.waitForNames(names, options)),
    waitForAvailable: async (c, names, options) => {
      await c.queue.waitForAvailable(names, options);
      return "available";
    },
    async take(c, options) {
      c.vars.open = await c.queue.next({ ...options, completable: true });
      return view(c.vars.open);
    },
    async takeTwo(c) {
      await c.queue.next({ completable: true });
      return c.queue.next({ timeout: 0 }).then(view, told);
    },
    complete: (c, response) => c.vars.open.complete(response),
    async completeTwice(c) {
      await c.vars.open.complete();
      return c.vars.open.complete().then(() => "twice", told);
    },
    async aborts(c) {
      const abort = new AbortController();
      setTimeout(() => abort.abort(), 30);
      return c.queue
        .next({ signal: abort.signal, timeout: 5_000 })
        .then((got) => (got === undefined ? "undefined" : "got"), told);
    },
    rest: (c) => c.sleep(),
  },
});

const worker = actor({
  ...noted,
  state: { seen: [] },
  queues: { jobs: queue(), slow: queue(), never: queue() },
  options: { sleepTimeout: 300 },
  async run(c) {
    for await (const message of c.queue.iter({ names: ["jobs", "slow"], completable: true })) {
      if (message.name === "slow") await new Promise((resolve) => setTimeout(resolve, 500));
      c.state.seen.push(message.body);
      await message.complete({ did: message.body });
    }
  },
  actions: {
    seen: (c) => c.state.seen,
    ask: (c, name, body, options) =>
      c.queue.enqueueAndWait(name, body, options).then((answer) => ({ answer }), told),
  },
});

export const actors = { shelf, worker };
