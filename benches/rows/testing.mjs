// Time that a test does not wait for.

import { actor } from "greenroom";
import { testRuntime } from "greenroom/testing";
import { cpuSince, timed } from "../measure.mjs";
import { atMost } from "../table.mjs";

const HOUR = 3_600_000;
let runs = 0;

/** Sleeps on the clock from hour to hour. */
const loop = actor({
  options: { noSleep: true },
  run: async (c) => {
    for (;;) {
      await c.clock.sleep(HOUR);
      runs += 1;
    }
  },
  actions: { ping: () => "pong" },
});

/** Is woken each hour, and sleeps again 30 seconds later. */
const cron = actor({
  onCreate: (c) => c.cron.set({ name: "hourly", expression: "0 * * * *", action: "tick" }),
  actions: { ping: () => "pong" },
  internalActions: {
    tick() {
      runs += 1;
    },
  },
});

export default async function* testing(run) {
  yield await year(run, loop, "test: 365 days over an hourly job, 8,760 runs");
  yield await year(run, cron, "test: 365 days over an hourly cron, 8,760 runs");
}

/** Something that runs each hour, for a year on the clock of the test. */
async function year(run, job, work) {
  const hours = run.scaled(8_760);
  const [samples, cpus, references] = [[], [], []];
  for (let i = 0; i <= run.repetitions; i++) {
    const runtime = testRuntime({ use: { job } });
    await runtime.client.job.getOrCreate().ping();
    runs = 0;
    const reference = await timed(async () => {
      for (let n = 0; n < hours; n++) await new Promise(setImmediate);
    });
    const usage = process.cpuUsage();
    const took = await timed(() => runtime.clock.advance(hours * HOUR));
    const cpu = cpuSince(usage) / hours;
    if (runs !== hours) throw new Error(`${runs} runs in ${hours} hours`);
    await runtime.close();
    // The first one is not counted.
    if (i === 0) continue;
    samples.push(took);
    cpus.push(cpu);
    references.push(reference);
  }
  return {
    work,
    unit: "ms",
    samples,
    cpus,
    reference: { what: "as many turns of the event loop", unit: "ms", samples: references },
    target: atMost("ms", 2_000),
  };
}
