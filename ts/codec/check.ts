/** The fast walk that only checks; used where a value enters an actor's state. */

import { classify, MAX_DEPTH } from "./classify";
import { errorFields, REFUSED } from "./parts";
import { unwrap } from "./proxies";

/**
 * Throws {@link REFUSED} when a part of `value` is refused. Objects for which `known` says yes were
 * checked before and are not entered.
 */
export function check(value: unknown, known: (raw: object) => boolean, depth = 0): void {
  if (typeof value !== "object") {
    if (typeof value === "function" || typeof value === "symbol") throw REFUSED;
    return;
  }
  if (value === null) return;
  const raw = unwrap(value);
  if (known(raw)) return;
  const kind = classify(raw);
  if (typeof kind === "object" || depth > MAX_DEPTH) throw REFUSED;
  const next = depth + 1;
  if (kind === "object") {
    for (const key of Object.keys(raw)) check((raw as Record<string, unknown>)[key], known, next);
  } else if (kind === "array") {
    // Holes are passed over.
    (raw as unknown[]).forEach((part) => {
      check(part, known, next);
    });
  } else if (kind === "map") {
    for (const [key, part] of raw as Map<unknown, unknown>) {
      check(key, known, next);
      check(part, known, next);
    }
  } else if (kind === "set") {
    for (const part of raw as Set<unknown>) check(part, known, next);
  } else if (kind === "error") {
    for (const [, part] of errorFields(raw as Error)) check(part, known, next);
  }
}
