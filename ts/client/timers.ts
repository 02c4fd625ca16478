/** Time and chance of a client, so that tests can hold both still. */

import { onAbort, type Stop } from "../native/listen";

/** Where a client takes time and chance from. */
export interface Timers {
  /** Runs `run` once, after `ms` milliseconds. */
  setTimeout(run: () => void, ms: number): unknown;
  /** Gives up what {@link Timers.setTimeout} returned. */
  clearTimeout(timer: unknown): void;
  /** A number from 0, less than 1. */
  random(): number;
}

/** Those of the platform. */
export const platformTimers: Timers = {
  setTimeout: (run, ms) => setTimeout(run, ms),
  clearTimeout: (timer) => clearTimeout(timer as number),
  random: Math.random,
};

/** Resolves after `ms` milliseconds; rejects with the reason of the signal when it fires before. */
export async function pause(timers: Timers, ms: number, stop: Stop | undefined): Promise<void> {
  stop?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = timers.setTimeout(() => {
      heard?.();
      resolve();
    }, ms);
    const heard =
      stop &&
      onAbort(stop, () => {
        timers.clearTimeout(timer);
        reject(stop.reason);
      });
  });
}

/** Waits that double from one to the next, each cut short by chance so that clients do not come at once. */
export class Backoff {
  readonly #timers: Timers;
  readonly #first: number;
  readonly #longest: number;
  #next: number;

  /** @param first milliseconds of the first wait, of which at least half is waited. */
  constructor(timers: Timers, first: number, longest: number) {
    this.#timers = timers;
    this.#first = first;
    this.#longest = longest;
    this.#next = first;
  }

  /** The milliseconds of the next wait. */
  take(): number {
    const full = this.#next;
    this.#next = Math.min(full * 2, this.#longest);
    return Math.round(full * (0.5 + this.#timers.random() / 2));
  }

  /** The next wait is the first again. */
  reset(): void {
    this.#next = this.#first;
  }
}
