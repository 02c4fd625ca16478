/** `queue()`: declares a queue of an actor. */

import type { QueueOptions, QueueSchema } from "../types";

/**
 * Declares a queue, to be given to `queues` of `actor()`. Types are named, `queue<Job, Result>()`, or
 * inferred from schemas. Without a second type nobody answers.
 */
export function queue<M = unknown, R = never, Sent = M, Answered = R>(
  options: QueueOptions<Sent, M, Answered, R> = {},
): QueueSchema<{ sent: Sent; received: M; answered: Answered; response: R }> {
  return { ...options };
}
