/**
 * Outputs of calls in place that wait for a commit.
 *
 * 1. They leave in the order in which they came, and none before its commit.
 */
import type { RivetError } from "./errors.js";

/** The waiting side of a call. */
export interface Output {
  /** Lets it leave. */
  leave(): void;
  /** What it may reveal was lost. */
  fail(error: RivetError): void;
}

export class HeldOutputs {
  #waiting: { commit: number; output: Output }[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  /** Keeps an output until `commit` is durable. */
  hold(commit: number, output: Output): void {
    this.#waiting.push({ commit, output });
  }

  /** No commit after `last` will come for what waits: it waits for that one. */
  settleFor(last: number): void {
    for (const held of this.#waiting) held.commit = Math.min(held.commit, last);
  }

  /** Lets out what waited for `durable` or an earlier commit. */
  release(durable: number): void {
    let count = 0;
    while (count < this.#waiting.length && (this.#waiting[count]?.commit ?? 0) <= durable)
      count += 1;
    for (const { output } of this.#waiting.splice(0, count)) output.leave();
  }

  fail(error: RivetError): void {
    for (const { output } of this.#waiting.splice(0)) output.fail(error);
  }
}
