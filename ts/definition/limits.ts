/** What one remote client of an actor may do. */

import { checkKeys, describe } from "./keys";

/** Limits; what is not given is not limited. */
export interface Limits {
  readonly messagesPerSecond: number | undefined;
  readonly burst: number | undefined;
  readonly connectionsPerIp: number | undefined;
}

/** The largest limit: what fits in four bytes. */
const MAX = 2 ** 32 - 1;

/** Checks `limits` of `actor()`. */
export function readLimits(given: unknown): Limits {
  const limits = given ?? {};
  checkKeys(limits, {
    place: "limits of actor()",
    known: ["messagesPerSecond", "burst", "connectionsPerIp"],
  });
  const read = (key: keyof Limits): number | undefined => {
    const value = limits[key];
    if (value === undefined) return undefined;
    if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX) {
      return value as number;
    }
    throw new TypeError(
      `${key} of limits of actor() is ${describe(value)}, not a whole number from 1 to ${MAX}`,
    );
  };
  const made = {
    messagesPerSecond: read("messagesPerSecond"),
    burst: read("burst"),
    connectionsPerIp: read("connectionsPerIp"),
  };
  if (made.burst !== undefined && made.messagesPerSecond === undefined) {
    throw new TypeError("limits of actor() have burst without messagesPerSecond: give both");
  }
  return made;
}
