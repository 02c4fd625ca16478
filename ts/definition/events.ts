/** The events of an actor, as they were declared. */

import type { StandardSchemaV1 } from "@standard-schema/spec";

import { isSchema } from "../schema";
import { isGroup } from "./actions";
import { checkFunction, checkKeys, describe, quoted } from "./keys";

/** An event. */
export interface EventRules {
  readonly schema: StandardSchemaV1 | undefined;
  readonly canSubscribe: ((c: unknown) => unknown) | undefined;
}

/** Checks `events` of `actor()`. */
export function readEvents(given: unknown): ReadonlyMap<string, EventRules> {
  const events = new Map<string, EventRules>();
  if (given === undefined) return events;
  if (!isGroup(given)) {
    throw new TypeError(`events of actor() is ${describe(given)}, not an object`);
  }
  for (const [name, rules] of Object.entries(given)) {
    if (rules !== undefined) events.set(name, readEvent(rules, `event ${quoted(name)} of actor()`));
  }
  return events;
}

function readEvent(given: unknown, place: string): EventRules {
  if (isSchema(given)) return { schema: given, canSubscribe: undefined };
  checkKeys(given, { place, known: ["schema", "canSubscribe"] });
  const { schema, canSubscribe } = given;
  if (schema !== undefined && !isSchema(schema)) {
    throw new TypeError(`schema of ${place} is ${describe(schema)}, not a Standard Schema`);
  }
  checkFunction(canSubscribe, "canSubscribe", place);
  return { schema, canSubscribe: canSubscribe as EventRules["canSubscribe"] };
}
