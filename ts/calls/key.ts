/** Keys of actors, as callers give them. */

import { describe } from "../definition/keys";

/** The parts of a key. */
export function readKey(key: unknown): string[] {
  if (key === undefined) return [];
  if (typeof key === "string") return [key];
  if (!Array.isArray(key))
    throw new TypeError(`a key is a string or a list of strings, not ${describe(key)}`);
  for (const part of key) {
    if (typeof part !== "string") {
      throw new TypeError(`a part of a key is a string, not ${describe(part)}`);
    }
  }
  return [...key];
}
