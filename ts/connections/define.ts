/** `event()`: declares an event of an actor. */

import type { EventOptions, EventSchema } from "../types";

/**
 * Declares an event, to be given to `events` of `actor()`. Its payload is named, `event<string>()`, or
 * inferred from a schema. A tuple becomes the arguments of the event, anything else its only one.
 */
export function event<T = unknown, Sent = T>(
  options: EventOptions<Sent, T> = {},
): EventSchema<{ sent: Sent; received: T }> {
  return { ...options };
}
