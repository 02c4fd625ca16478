/**
 * Keeps the process alive for calls in place whose answer comes from outside JavaScript: a deadline,
 * a commit, a sleep on the runtime's clock.
 *
 * 1. Most calls end within the turn in which they were made. So nothing is held before the event
 *    loop has turned, and then one timer for all of them.
 * 2. Nothing here counts as hearing a failure: one that no caller hears is reported as unhandled.
 */

import { clockwork } from "../native-half";

let open = 0;
let looking = false;
let holding = false;
let hold: clockwork.Hold | undefined;

/** Holds the process until `answer` settles. Returns what to give to the caller (2). */
export function awaited<T>(answer: Promise<T>): Promise<T> {
  open += 1;
  lookSoon();
  return answer.then(heard, refused) as Promise<T>;
}

function heard(value: unknown): unknown {
  settled();
  return value;
}

function refused(error: unknown): never {
  settled();
  throw error;
}

function settled(): void {
  open -= 1;
  if (open === 0 && holding) lookSoon();
}

function lookSoon(): void {
  if (looking) return;
  looking = true;
  clockwork.setImmediate(look);
}

function look(): void {
  looking = false;
  if (open > 0 === holding) return;
  holding = open > 0;
  if (hold === undefined) hold = clockwork.holdProcess();
  else if (holding) hold.ref();
  else hold.unref();
}
