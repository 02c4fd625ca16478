/**
 * When calls leave: what holds one up, and what queues behind it.
 *
 * 1. What is held up leaves in the order in which it was called, also when one in between was given
 *    up or refused.
 * 2. Who gives up has the reason at once, whatever the call waits for.
 * 3. An actor's queue holds only what waits for its own commits. Nothing in it waits for another
 *    actor, so a circle of calls cannot stand still.
 */

import type { Live } from "../actors/live";
import { isRivetErrorCode } from "../errors";
import { clockwork, dispatch, onAbort, type Stop } from "../native-half";
import { insideOf } from "../transaction/inside";
import type { Ends } from "./awaited";
import type { Call } from "./call";

/** The calls of one handle that have not left. */
export class Departures {
  #last: Promise<void> | undefined;

  /** Whether the next call has nobody to queue behind. */
  get none(): boolean {
    return this.#last === undefined;
  }

  /**
   * Leaves with what `prepare` gives, once it and all calls before this one are ready. What leaves has to
   * end the promise that this returns.
   */
  depart(signal: Stop | undefined, prepare: () => Promise<(ends: Ends) => void>): Promise<unknown> {
    const before = this.#last;
    const ready = async (): Promise<(ends: Ends) => void> => {
      await before;
      signal?.throwIfAborted();
      return prepare();
    };
    let gone!: () => void;
    const last = new Promise<void>((resolve) => {
      gone = resolve;
    });
    this.#last = last;
    const end = (): void => {
      gone();
      if (this.#last === last) this.#last = undefined;
    };
    return new Promise((resolve, reject) => {
      const leaving = unlessAborted(ready(), signal).then((leave) => leave({ resolve, reject }));
      // Whatever became of it, those behind it are not held up by it.
      const left = (): void => {
        if (before === undefined) end();
        else before.then(end);
      };
      leaving.then(left, (error) => {
        left();
        reject(error);
      });
    });
  }
}

const queues = new WeakMap<Live, Promise<void>>();

/**
 * When a call of an actor may leave: what the actor changed before it is durable then. `undefined`
 * for at once. Rejects where that was lost.
 */
export function mayLeave(live: Live, call: Call | undefined): Promise<void> | undefined {
  const within = insideOf(live);
  // Whatever waits outside goes its own way: it may leave before the transaction ends.
  if (within !== undefined) return within.left();
  // What cannot be watched may have changed since the last commit.
  if (live.definition.options.durability === "reply") live.recheck();
  const gate = behind(call?.statementsEnded(), () => dispatch.gate(live.bag))?.catch(
    unlessStarting,
  );
  const before = queues.get(live);
  if (gate === undefined && before === undefined) return undefined;
  const open = Promise.allSettled([before]).then(() => gate);
  queues.set(live, open);
  const end = (): void => {
    // Whoever waited goes on in the microtasks before.
    clockwork.setImmediate(() => {
      if (queues.get(live) === open) queues.delete(live);
    });
  };
  open.then(end, end);
  gate?.catch(() => {});
  return open;
}

/** What `gate` gives once `before` has ended. */
function behind(
  before: Promise<unknown> | undefined,
  gate: () => Promise<void> | undefined,
): Promise<void> | undefined {
  return before === undefined ? gate() : before.then(gate);
}

/** A new actor is stored once `onCreate` has ended: what is called from there has nothing to wait for. */
function unlessStarting(error: unknown): void {
  if (!isRivetErrorCode(error, "actor", "starting")) throw error;
}

/** What `promise` gives, or the reason of `signal` when that fires first. */
export function unlessAborted<T>(promise: Promise<T>, signal: Stop | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    let heard = (): void => {};
    const abort = (): void => {
      heard();
      reject(signal.reason);
    };
    if (signal.aborted) abort();
    else heard = onAbort(signal, abort);
    promise.then(
      (value) => {
        heard();
        resolve(value);
      },
      (error) => {
        heard();
        reject(error);
      },
    );
  });
}
