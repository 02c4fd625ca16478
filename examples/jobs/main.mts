// Jobs that survive a crash: a worker that sums numbers, and now and then fails at one.
//
//     npm run example -- jobs [FOLDER]
//
// End it with Ctrl-C while it works, or kill it, and start it again: it goes on with what is left.

import { tmpdir } from "node:os";
import path from "node:path";
import { actor, queue, setup } from "greenroom";

interface Job {
  from: number;
  to: number;
}

const worker = actor({
  state: { total: 0, done: 0 },
  queues: {
    jobs: queue<Job>({ maxDeliveries: 5, backoff: { initial: 20, max: 1_000 } }),
    report: queue<null, { total: number; done: number }>(),
  },
  async run(c) {
    for await (const message of c.queue.iter({ completable: true })) {
      if (message.name === "report") {
        await message.complete({ total: c.state.total, done: c.state.done });
        continue;
      }
      if (Math.random() < 0.2) {
        await message.nack({ error: "bad luck" });
        continue;
      }
      const { from, to } = message.body;
      for (let n = from; n < to; n += 1) c.state.total += n;
      c.state.done += 1;
      // In the same turn as the sum: both are stored, or neither is.
      await message.complete();
    }
  },
  actions: {
    waiting: async (c) => ({ ...c.state, dead: (await c.queue.dead.list()).length }),
  },
});

const storage = process.argv[2] ?? path.join(tmpdir(), "greenroom-example-jobs");
const registry = setup({ use: { worker }, storage });
const jobs = registry.client().worker.getOrCreate("sums");

const before = await jobs.waiting();
console.log(`${before.done} jobs were done before, with a total of ${before.total}`);

// Each is on the disk when its promise resolves.
await Promise.all(
  Array.from({ length: 20 }, (_, n) => jobs.send("jobs", { from: n * 10, to: n * 10 + 10 })),
);

let now = await jobs.waiting();
while (now.done + now.dead < before.done + before.dead + 20) {
  await new Promise((resolve) => setTimeout(resolve, 20));
  now = await jobs.waiting();
}
const answer = await jobs.send("report", null, { wait: true, timeout: 5_000 });
if (answer.status === "completed") {
  console.log(`${answer.response?.done} jobs are done, with a total of ${answer.response?.total}`);
}

await registry.shutdown();
