/**
 * Unknown keys are refused by name.
 *
 * 1. No key is ever ignored in silence: it is known, or refused.
 * 2. A key that is known but not built yet says so, rather than that it does not exist.
 */

/** What a place accepts. */
export interface Keys {
  /** How the place is called in errors, such as `actor()`. */
  readonly place: string;
  /** Keys that are accepted. */
  readonly known: readonly string[];
  /** Keys that exist by name and are not available yet. */
  readonly later?: readonly string[];
  /** Keys that are accepted and have no effect. */
  readonly ignored?: readonly string[];
}

/** Refuses whatever `keys` does not accept. */
export function checkKeys(given: unknown, keys: Keys): asserts given is Record<string, unknown> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new TypeError(`${keys.place} takes an object, not ${describe(given)}`);
  }
  for (const key of Reflect.ownKeys(given)) {
    if (typeof key === "symbol") throw new TypeError(`${keys.place} has an unknown ${String(key)}`);
    if (keys.known.includes(key)) continue;
    if (keys.ignored?.includes(key)) continue;
    if (keys.later?.includes(key)) {
      throw new TypeError(`key ${quoted(key)} of ${keys.place} is not available yet`);
    }
    const near = nearest(key, [...keys.known, ...(keys.later ?? [])]);
    const hint =
      near === undefined ? `known are ${keys.known.join(", ")}` : `did you mean ${quoted(near)}?`;
    throw new TypeError(`unknown key ${quoted(key)} of ${keys.place}: ${hint}`);
  }
}

/** Refuses a value that is not a function. */
export function checkFunction(value: unknown, key: string, place: string): void {
  if (value !== undefined && typeof value !== "function") {
    throw new TypeError(`${key} of ${place} is ${describe(value)}, not a function`);
  }
}

/** A value for a sentence in an error. */
export function describe(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "undefined";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "string") return quoted(value);
  if (typeof value === "object") return "an object";
  if (typeof value === "function") return "a function";
  return String(value);
}

/** A name for a sentence in an error. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text);
}

/** The name that was probably meant; `undefined` when none is near. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.min(3, Math.ceil(name.length / 3)) + 1;
  for (const candidate of names) {
    const steps = distance(name.toLowerCase(), candidate.toLowerCase());
    if (steps < least) {
      least = steps;
      best = candidate;
    }
  }
  return best;
}

/** How many letters must be added, removed, replaced or swapped with their neighbour. */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 3) return Number.POSITIVE_INFINITY;
  let older: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      let steps = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (same ? 0 : 1),
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        steps = Math.min(steps, (older[j - 2] ?? 0) + 1);
      }
      row.push(steps);
    }
    older = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
