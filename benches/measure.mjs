// Repeats a measurement beside its reference, so that both meet the same moods of the machine.

import { performance } from "node:perf_hooks";

const SETTLE_MS = 30;

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Microseconds that all threads of the process have used since `before`. */
export function cpuSince(before) {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The middle, the lowest and the highest of some samples. */
export const spread = (samples) => ({
  median: median(samples),
  low: Math.min(...samples),
  high: Math.max(...samples),
});

/** Runs `call(i)` for i in [0, operations), always `count` of them at once. */
export async function inFlight(count, operations, call) {
  let next = 0;
  const lane = async () => {
    while (next < operations) await call(next++);
  };
  await Promise.all(Array.from({ length: count }, lane));
}

/** One sample: operations per second, and the microseconds of CPU time that each took. */
async function rateOf(operations, body) {
  const usage = process.cpuUsage();
  const started = performance.now();
  await body(operations);
  const seconds = (performance.now() - started) / 1000;
  return { rate: operations / seconds, cpu: cpuSince(usage) / operations };
}

/**
 * Measures how often a second `body(operations)` does its work, after one round that is not counted.
 * A `reference` of the same form is measured before each repetition.
 *
 * Returns `{rates, cpus, references}`; CPU time is that of the whole process.
 */
export async function rates(run, { operations, body, reference }) {
  const count = run.scaled(operations);
  const referenceCount = reference && run.scaled(reference.operations);
  await reference?.body(Math.ceil(referenceCount / 5));
  await body(Math.ceil(count / 5));
  const out = { rates: [], cpus: [], references: [] };
  for (let i = 0; i < run.repetitions; i++) {
    await pause(SETTLE_MS);
    if (reference) out.references.push((await rateOf(referenceCount, reference.body)).rate);
    const { rate, cpu } = await rateOf(count, body);
    out.rates.push(rate);
    out.cpus.push(cpu);
  }
  return out;
}

/** How long `body` takes, in milliseconds. */
export async function timed(body) {
  const started = performance.now();
  await body();
  return performance.now() - started;
}

/** The median time of `operations` calls, in milliseconds, and the CPU time of each, in microseconds. */
export async function latencies(operations, call) {
  const took = [];
  const usage = process.cpuUsage();
  for (let i = 0; i < operations; i++) took.push(await timed(() => call(i)));
  return { p50: median(took), cpu: cpuSince(usage) / operations };
}
