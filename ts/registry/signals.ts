/**
 * Shutting down on a signal.
 *
 * 1. The signal takes its course afterwards: the process ends as it would have, with the same code.
 *    That is once for all who shut down on it, after the last of them.
 * 2. A second signal does not wait.
 * 3. However many there are, each signal is listened to once.
 */

import { constants } from "node:os";

import { once } from "../native-half";

/** The signals on which a program is asked to end. */
const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** What is to be done on a signal. */
export interface Drain {
  run: () => Promise<unknown>;
}

class Drains {
  readonly #drains = new Set<Drain>();

  add(drain: Drain): void {
    if (this.#drains.size === 0) for (const signal of SIGNALS) process.on(signal, this.#heard);
    this.#drains.add(drain);
  }

  remove(drain: Drain): void {
    if (this.#drains.delete(drain) && this.#drains.size === 0) this.#stop();
  }

  #stop(): void {
    for (const signal of SIGNALS) process.off(signal, this.#heard);
  }

  readonly #heard = (signal: NodeJS.Signals): void => {
    // From here on the default holds again (2).
    this.#stop();
    if (hasNoDefault()) for (const other of SIGNALS) process.on(other, end);
    const drains = [...this.#drains];
    this.#drains.clear();
    void Promise.allSettled(drains.map(async (drain) => drain.run())).then(() => end(signal));
  };
}

/** The kernel gives the first process of a container no default: no signal ends it by itself. */
function hasNoDefault(): boolean {
  return process.pid === 1;
}

/** Ends the process as the signal would, with the code that a shell shows for it where it cannot. */
function end(signal: NodeJS.Signals): void {
  if (hasNoDefault()) process.exit(128 + constants.signals[signal]);
  process.kill(process.pid, signal);
}

const drains = once("drains", () => new Drains());

/** Runs `drain` on the first signal, as it is by then. Returns how to stop listening. */
export function onSignals(drain: Drain): () => void {
  drains.add(drain);
  return () => drains.remove(drain);
}
