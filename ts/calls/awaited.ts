/**
 * Keeps the process alive for calls in place whose answer comes from outside JavaScript: a deadline,
 * a commit, a sleep on the runtime's clock.
 *
 * 1. Most calls end within the turn in which they were made. So nothing is held before the event
 *    loop has turned, and then one timer for all of them.
 * 2. Nothing here counts as hearing a failure: one that no caller hears is reported as unhandled.
 * 3. An answer takes as many microtasks to its caller whether its call was held up or not: else one that
 *    was made later could come first.
 */

import { clockwork } from "../native-half";

let open = 0;
let looking = false;
let holding = false;
let hold: clockwork.Hold | undefined;

/** The ends of a promise that the caller has already. */
export interface Ends {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/**
 * Holds the process until `answer` settles. Returns what to give to the caller (2), unless it goes to
 * `ends`.
 */
export function awaited(answer: Promise<unknown>, ends: Ends | undefined): Promise<unknown> {
  open += 1;
  lookSoon();
  return through(answer, heard, refused, ends);
}

/** The same for an answer that holds the process by itself. */
export function passed(answer: Promise<unknown>, ends: Ends | undefined): Promise<unknown> {
  return through(answer, given, thrown, ends);
}

function given(value: unknown): unknown {
  return value;
}

function thrown(error: unknown): never {
  throw error;
}

/** `answer.then(ok, failed)`, whose outcome goes to `ends` where there are some, and no later (3). */
export function through<T>(
  answer: Promise<T>,
  ok: (value: T) => unknown,
  failed: (error: unknown) => never,
  ends: Ends | undefined,
): Promise<unknown> {
  if (ends === undefined) return answer.then(ok, failed);
  const into =
    <V>(make: (value: V) => unknown) =>
    (value: V): void => {
      try {
        ends.resolve(make(value));
      } catch (error) {
        ends.reject(error);
      }
    };
  return answer.then(into(ok), into(failed));
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
