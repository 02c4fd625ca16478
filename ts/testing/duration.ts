/** How long a clock is moved: milliseconds, or words. */

import { describe } from "../definition/keys";

const MS = {
  ms: 1,
  millisecond: 1,
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
} as const;

type Unit = keyof typeof MS;

/** Milliseconds from 0, or a number and a unit: `"1 hour"`, `"30 days"`. */
export type Duration = number | `${number} ${Unit | `${Exclude<Unit, "ms">}s`}`;

/**
 * The milliseconds of a duration.
 *
 * @throws TypeError naming what is none.
 */
export function readDuration(given: unknown, place: string): number {
  const ms = typeof given === "string" ? ofText(given) : given;
  if (typeof ms !== "number" || !(ms >= 0) || !Number.isSafeInteger(Math.ceil(ms))) {
    throw new TypeError(
      `${place} takes milliseconds from 0 or text such as "30 days", not ${describe(given)}`,
    );
  }
  return Math.ceil(ms);
}

function ofText(text: string): number | undefined {
  const [, count, unit] = /^(\d+(?:\.\d+)?) ([a-z]+?)s?$/.exec(text) ?? [];
  // `ms` without its `s`.
  const name = unit === "m" && text.endsWith("ms") ? "ms" : unit;
  if (name === undefined || !Object.hasOwn(MS, name)) return undefined;
  return Number(count) * MS[name as Unit];
}
