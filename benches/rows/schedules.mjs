// What is scheduled: how late it runs, and what it costs while nothing is due.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { setup } from "greenroom";
import { lateness, punctual, sleeper } from "../actors.mjs";
import { inFlight, pause } from "../measure.mjs";
import { atMost, atMostPart } from "../table.mjs";

const ACTORS = 100;
const EACH = 10;

export default async function* schedules(run) {
  yield await late(run);
  yield* await resting(run);
}

async function late(run) {
  const registry = setup({ use: { punctual }, storage: run.folder() });
  const client = registry.client();
  const handles = Array.from({ length: ACTORS }, (_, i) => client.punctual.getOrCreate(`${i}`));
  const [samples, references] = [[], []];
  for (let i = 0; i <= run.repetitions; i++) {
    references.push(await timers(ACTORS * EACH));
    lateness.length = 0;
    const moment = Date.now() + 1_500;
    await Promise.all(handles.map((handle) => handle.expect(moment, EACH)));
    while (lateness.length < ACTORS * EACH) await pause(20);
    samples.push(p99(lateness));
  }
  await registry.shutdown();
  // The first round made the actors, and is not counted.
  return {
    work: "lateness of 1,000 one-shots of 100 actors due at one moment (p99)",
    unit: "ms",
    samples: samples.slice(1),
    reference: { what: "1,000 timers of Node.js", unit: "ms", samples: references.slice(1) },
    target: atMost("ms", 10),
  };
}

/** How late that many timers of Node.js are for one moment. */
async function timers(count) {
  const moment = performance.now() + 100;
  const found = await Promise.all(
    Array.from({ length: count }, async () => {
      await pause(100);
      return performance.now() - moment;
    }),
  );
  return Math.max(0, p99(found));
}

function p99(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length * 0.99)];
}

async function* resting(run) {
  const folder = run.folder();
  const actors = run.scaled(100_000);
  const registry = setup({ use: { sleeper }, storage: folder });
  const client = registry.client();
  await inFlight(64, actors, (i) => client.sleeper.getOrCreate(`sleeper-${i}`).rest());
  await registry.shutdown({ deadline: 60_000 });
  const [starts, idles, emptyStarts, emptyIdles] = [[], [], [], []];
  for (let i = 0; i < Math.min(run.repetitions, 3); i++) {
    const empty = await opened();
    const full = await opened(folder);
    emptyStarts.push(empty.ms);
    emptyIdles.push(empty.idle);
    starts.push(full.ms);
    idles.push(full.idle);
  }
  const what = "100,000 sleeping actors with a schedule each";
  yield {
    work: `start of a program with ${what}, up to the first answered call`,
    unit: "ms",
    samples: starts,
    reference: { what: "an empty program", unit: "ms", samples: emptyStarts },
    target: atMost("ms", 1_000),
  };
  yield {
    work: `CPU time of two seconds in which nothing is due, ${what}`,
    unit: "ms",
    samples: idles,
    reference: { what: "an empty program", unit: "ms", samples: emptyIdles },
    // Nothing of its own, give or take what two runs of the empty program differ by.
    target: atMostPart(1.25),
  };
}

/** Milliseconds until a program is open, and its CPU time in two idle seconds after that. */
async function opened(...args) {
  const file = fileURLToPath(new URL("../programs/idle.mjs", import.meta.url));
  const started = performance.now();
  const child = spawn(process.execPath, [file, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  const ms = performance.now() - started;
  const { value } = await lines.next();
  await ended;
  return { ms, idle: Number(value) / 1_000 };
}
