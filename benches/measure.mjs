// Repeats a measurement beside its reference, so that both meet the same moods of the machine.

import { performance } from "node:perf_hooks";

/** Between repetitions, so that what the last one left behind is done. */
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

/** Time and CPU time of some operations, added up over the slices of one repetition. */
class Sum {
  operations = 0;
  seconds = 0;
  cpu = 0;

  async add(operations, body) {
    const usage = process.cpuUsage();
    const started = performance.now();
    await body(operations);
    this.seconds += (performance.now() - started) / 1000;
    this.cpu += cpuSince(usage);
    this.operations += operations;
  }
}

/** In how many slices a repetition is measured, each after a slice of its reference. */
const SLICES = 5;

/**
 * Measures how often a second `body(operations)` does its work, after one round that is not counted.
 * A `reference` of the same form is measured by turns with it, since the moods of a disk last longer
 * than a slice.
 *
 * Returns `{rates, cpus, references}`; CPU time, in microseconds for each operation, is that of the
 * whole process.
 */
export async function rates(run, { operations, body, reference }) {
  const count = run.scaled(operations / SLICES);
  const referenceCount = run.scaled(reference.operations / SLICES);
  await reference.body(referenceCount);
  await body(count);
  const out = { rates: [], cpus: [], references: [] };
  for (let i = 0; i < run.repetitions; i++) {
    await pause(SETTLE_MS);
    const [measured, beside] = [new Sum(), new Sum()];
    for (let slice = 0; slice < (run.quick ? 1 : SLICES); slice++) {
      await beside.add(referenceCount, reference.body);
      await measured.add(count, body);
    }
    out.rates.push(measured.operations / measured.seconds);
    out.cpus.push(measured.cpu / measured.operations);
    out.references.push(beside.operations / beside.seconds);
  }
  return out;
}

/** The row of the table for work that is measured by {@link rates}. */
export async function rateRow(run, { work, target, ...measured }) {
  const { rates: samples, cpus, references } = await rates(run, measured);
  const reference = { what: measured.reference.what, unit: "rate", samples: references };
  return { work, unit: "rate", samples, cpus, reference, target };
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
