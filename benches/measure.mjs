// Repeats a measurement and reports its median and range.

import { performance } from "node:perf_hooks";

const REPETITIONS = 5;
const SETTLE_MS = 50;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * Measures `body(operations)` a few times after one that is not counted. The time of the whole
 * process counts as CPU time, so work on other threads is in it.
 *
 * Returns `{name, rate, slowest, fastest, cpuMicros}`; rates are operations per second.
 */
export async function measure(name, operations, body) {
  await body(Math.ceil(operations / 5));
  const rates = [];
  const cpu = [];
  for (let i = 0; i < REPETITIONS; i++) {
    await pause(SETTLE_MS);
    const usage = process.cpuUsage();
    const started = performance.now();
    await body(operations);
    const seconds = (performance.now() - started) / 1000;
    const { user, system } = process.cpuUsage(usage);
    rates.push(operations / seconds);
    cpu.push((user + system) / operations);
  }
  return {
    name,
    rate: median(rates),
    slowest: Math.min(...rates),
    fastest: Math.max(...rates),
    cpuMicros: median(cpu),
  };
}

/** Runs `call(i)` for i in [0, operations), always `inFlight` of them at once. */
export async function inFlight(count, operations, call) {
  let next = 0;
  const lane = async () => {
    while (next < operations) await call(next++);
  };
  await Promise.all(Array.from({ length: count }, lane));
}

const whole = (number) => Math.round(number).toLocaleString("en");

/** The rows as a table in Markdown. */
export function asTable(rows) {
  const cells = rows.map((row) => [
    row.name,
    whole(row.rate),
    `${whole(row.slowest)} – ${whole(row.fastest)}`,
    row.cpuMicros.toFixed(1),
  ]);
  const all = [["", "per second", "range", "CPU µs each"], ...cells];
  const widths = all[0].map((_, i) => Math.max(...all.map((row) => row[i].length)));
  const line = (row) =>
    `| ${row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join(" | ")} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [line(all[0]), rule, ...cells.map(line)].join("\n");
}
