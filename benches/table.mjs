// The result: one row for each kind of work, as a table in Markdown.

import { median, spread } from "./measure.mjs";

const whole = (number) => Math.round(number).toLocaleString("en");

const UNITS = {
  rate: (value) => `${whole(value)}/s`,
  ms: (value) => (value >= 100 ? `${whole(value)} ms` : `${value.toPrecision(3)} ms`),
  bytes: (value) =>
    Math.abs(value) >= 1e5 ? `${(value / 1e6).toFixed(2)} MB` : `${(value / 1e3).toFixed(2)} KB`,
};

export const show = (unit, value) => UNITS[unit](value);

/**
 * One row. `samples` are in `unit` (`rate`, `ms` or `bytes`), `cpus` in microseconds for each
 * operation. `reference` is `{what, unit, samples}`. `target` is `{text, reached}`; `reached` is given
 * the medians `{value, cpu, part}`, where `part` is of the reference of the same moment.
 */
export function row({ work, unit, samples, cpus, reference, target }) {
  const { median: value, low, high } = spread(samples);
  const cpu = cpus && median(cpus);
  const beside = reference && median(reference.samples);
  // By pairs, each of one moment.
  const part = reference && median(samples.map((sample, i) => sample / reference.samples[i]));
  return {
    work,
    measured: show(unit, value),
    range: `${show(unit, low)} – ${show(unit, high)}`,
    cpu: cpu === undefined ? "" : cpu < 100 ? cpu.toFixed(1) : whole(cpu),
    reference: reference
      ? `${reference.what}: ${show(reference.unit, beside)}${target?.shows ? ` (${Math.round(part * 100)} %)` : ""}`
      : "",
    target: target?.text ?? "",
    reached: target ? (target.reached({ value, cpu, part }) ? "yes" : "NO") : "",
  };
}

/** A target of a rate, and perhaps of CPU time, in microseconds for each operation. */
export const atLeast = (rate, cpuMicros = Number.POSITIVE_INFINITY) => ({
  text: `${whole(rate)}/s${Number.isFinite(cpuMicros) ? `, ${cpuMicros} µs` : ""}`,
  reached: ({ value, cpu }) => value >= rate && cpu <= cpuMicros,
});

/** A target of a rate, or of a part of the reference where that is less. */
export const atLeastOrPart = (rate, part) => ({
  text: `${whole(rate)}/s or ${part * 100} % of the reference`,
  shows: true,
  reached: (measured) => measured.value >= rate || measured.part >= part,
});

/** A target that is an upper limit, in the unit of the row. */
export const atMost = (unit, limit, text = show(unit, limit)) => ({
  text,
  reached: ({ value }) => value <= limit,
});

/** A target that is a part of the reference of the row. */
export const partOfReference = (part) => ({
  text: `${Math.round(part * 100)} % of the reference`,
  shows: true,
  reached: (measured) => measured.part >= part,
});

/** A target that is no more than a part of the reference of the row. */
export const atMostPart = (part) => ({
  text: `${Math.round(part * 100)} % of the reference`,
  shows: true,
  reached: (measured) => measured.part <= part,
});

const COLUMNS = [
  ["work", "work", "padEnd"],
  ["measured", "measured (median)", "padStart"],
  ["range", "range", "padStart"],
  ["cpu", "CPU µs each", "padStart"],
  ["reference", "reference in the same run", "padEnd"],
  ["target", "target", "padEnd"],
  ["reached", "reached?", "padEnd"],
];

/** The rows as a table. */
export function asTable(rows) {
  const widths = COLUMNS.map(([key, title]) =>
    Math.max(title.length, ...rows.map((each) => each[key].length)),
  );
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const head = line(COLUMNS.map(([, title, pad], i) => title[pad](widths[i])));
  const rule = line(
    COLUMNS.map(([, , pad], i) =>
      pad === "padStart" ? `${"-".repeat(widths[i] - 1)}:` : "-".repeat(widths[i]),
    ),
  );
  const body = rows.map((each) =>
    line(COLUMNS.map(([key, , pad], i) => each[key][pad](widths[i]))),
  );
  return [head, rule, ...body].join("\n");
}
