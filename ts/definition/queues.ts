/** The queues of an actor, as they were declared. */

import type { StandardSchemaV1 } from "@standard-schema/spec";

import { isSchema } from "../schema";
import { isGroup } from "./actions";
import { checkFunction, checkKeys, describe, quoted } from "./keys";
import { UNPRINTABLE } from "./names";

/** A queue. */
export interface QueueRules {
  readonly message: StandardSchemaV1 | undefined;
  readonly complete: StandardSchemaV1 | undefined;
  readonly canPublish: ((c: unknown) => unknown) | undefined;
  /** After how many deliveries a message is given up; `undefined` for never. */
  readonly maxDeliveries: number | undefined;
  /** Pauses in milliseconds. */
  readonly backoff: { readonly initial: number; readonly max: number } | undefined;
}

/** The most deliveries: what fits in four bytes. */
const MAX_DELIVERIES = 2 ** 32 - 1;

/** Checks `queues` of `actor()`. */
export function readQueues(given: unknown): ReadonlyMap<string, QueueRules> {
  const queues = new Map<string, QueueRules>();
  if (given === undefined) return queues;
  if (!isGroup(given)) {
    throw new TypeError(`queues of actor() is ${describe(given)}, not an object`);
  }
  for (const [name, rules] of Object.entries(given)) {
    if (rules === undefined) continue;
    if (name === "" || UNPRINTABLE.test(name)) {
      throw new TypeError(`queues has one named ${quoted(name)}: it is empty or not printable`);
    }
    queues.set(name, readQueue(rules, `queue ${quoted(name)} of actor()`));
  }
  return queues;
}

function readQueue(given: unknown, place: string): QueueRules {
  if (isSchema(given)) return { ...none, message: given };
  checkKeys(given, {
    place,
    known: ["message", "complete", "canPublish", "maxDeliveries", "backoff"],
  });
  checkFunction(given.canPublish, "canPublish", place);
  return {
    message: schemaOf(given, "message", place),
    complete: schemaOf(given, "complete", place),
    canPublish: given.canPublish as QueueRules["canPublish"],
    maxDeliveries: maxDeliveriesOf(given.maxDeliveries, place),
    backoff: backoffOf(given.backoff, place),
  };
}

const none: QueueRules = {
  message: undefined,
  complete: undefined,
  canPublish: undefined,
  maxDeliveries: undefined,
  backoff: undefined,
};

function schemaOf(
  given: Record<string, unknown>,
  key: "message" | "complete",
  place: string,
): StandardSchemaV1 | undefined {
  const schema = given[key];
  if (schema === undefined || isSchema(schema)) return schema;
  throw new TypeError(`${key} of ${place} is ${describe(schema)}, not a Standard Schema`);
}

function maxDeliveriesOf(given: unknown, place: string): number | undefined {
  if (given === undefined) return undefined;
  if (Number.isInteger(given) && (given as number) >= 1 && (given as number) <= MAX_DELIVERIES) {
    return given as number;
  }
  throw new TypeError(
    `maxDeliveries of ${place} is ${describe(given)}, not a whole number from 1 to ${MAX_DELIVERIES}`,
  );
}

function backoffOf(given: unknown, place: string): QueueRules["backoff"] {
  if (given === undefined) return undefined;
  checkKeys(given, { place: `backoff of ${place}`, known: ["initial", "max"] });
  const { initial, max } = given;
  const isSpan = (ms: unknown): ms is number => typeof ms === "number" && ms >= 0 && ms < Infinity;
  if (!isSpan(initial)) {
    throw new TypeError(
      `initial of backoff of ${place} is ${describe(initial)}, not milliseconds from 0`,
    );
  }
  if (!isSpan(max) || max < initial) {
    throw new TypeError(
      `max of backoff of ${place} is ${describe(max)}, not milliseconds from ${initial}`,
    );
  }
  return { initial, max };
}
