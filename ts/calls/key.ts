/** Keys of actors, as callers give them. */

import { describe } from "../definition/keys";
import { invalidArgument } from "../errors";

/**
 * The parts of a key.
 *
 * @throws TypeError `actor.invalid_argument` for what is none.
 */
export function readKey(key: unknown): string[] {
  if (key === undefined) return [];
  if (typeof key === "string") return [readPart(key)];
  if (!Array.isArray(key))
    throw invalidArgument(`a key is a string or a list of strings, not ${describe(key)}`);
  return Array.from(key, readPart);
}

function readPart(part: unknown): string {
  if (typeof part !== "string") {
    throw invalidArgument(`a part of a key is a string, not ${describe(part)}`);
  }
  // Stored as UTF-8, which has no half characters: different keys would become the same one.
  if (LONE_SURROGATE.test(part)) {
    throw invalidArgument(`a key has no half of a surrogate pair, as ${describe(part)} has`);
  }
  return part;
}

const LONE_SURROGATE = /\p{Surrogate}/u;
