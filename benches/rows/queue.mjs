// Messages: sent through handles, received by `run`, completed. All of it durable.

import { actor, queue, setup } from "greenroom";
import { rateRow } from "../measure.mjs";
import { atLeast } from "../table.mjs";
import { groupCommit } from "./durable.mjs";

const ACTORS = 10;
/** How many messages each consumer takes at a time, as much as may wait for it. */
const BATCH = 100;
const WAITING = 1_000;

const worker = actor({
  queues: { job: queue() },
  options: { maxQueueSize: 2 * WAITING },
  createVars: () => ({ done: 0, heard: () => {} }),
  run: async (c) => {
    while (!c.aborted) {
      const messages = await c.queue.nextBatch({ count: BATCH, completable: true });
      await Promise.all(messages.map((message) => message.complete()));
      c.vars.done += messages.length;
      c.vars.heard();
    }
  },
  actions: {
    /** Resolves when so many messages more are completed. */
    async completes(c, count) {
      const end = c.vars.done + count;
      await new Promise((resolve) => {
        c.vars.heard = () => c.vars.done >= end && resolve();
        c.vars.heard();
      });
    },
  },
});

export default async function* queues(run) {
  const registry = setup({ use: { worker }, storage: run.folder() });
  const handles = Array.from({ length: ACTORS }, (_, n) =>
    registry.client().worker.getOrCreate(`${n}`),
  );
  for (const handle of handles) await handle.completes(0);

  /** Sends `each` messages to every actor, a thousand at a time, until all are completed. */
  const body = async (operations) => {
    const each = Math.ceil(operations / ACTORS);
    await Promise.all(
      handles.map(async (handle) => {
        const completed = handle.completes(each);
        for (let sent = 0; sent < each; sent += WAITING) {
          const part = Math.min(WAITING, each - sent);
          await Promise.all(Array.from({ length: part }, (_, n) => handle.send("job", n)));
        }
        await completed;
      }),
    );
  };
  const reference = groupCommit(run.folder());
  yield await rateRow(run, {
    work: `queue: send 100,000 small messages to ${ACTORS} actors and complete each, durable`,
    operations: 100_000,
    body,
    reference,
    target: atLeast(20_000),
  });
  await registry.shutdown();
}
