/**
 * Outputs of an actor to this environment, in the order in which they are to leave: those of calls in
 * place, which wait here for a commit, and between them the places of answers that take the ordinary way.
 *
 * 1. Outputs leave in the order in which they were made, and none before its commit.
 * 2. What Rust lets leave is not held up here: its place only holds up what was made later.
 * 3. An output that waited leaves one microtask late. An answer of the ordinary way passes one promise
 *    more, and so the two reach whoever waits for both in their order.
 */
import type { RivetError } from "./errors.js";

/** The waiting side of a call. */
export interface Output {
  /** Lets it leave. */
  leave(): void;
  /** What it may reveal was lost. */
  fail(error: RivetError): void;
}

interface Held {
  commit: number;
  /** Undefined: the place of an answer of the ordinary way. */
  readonly output: Output | undefined;
}

export class HeldOutputs {
  /** In the order of leaving; answers of the ordinary way by their ticket, others by themselves. */
  readonly #waiting = new Map<number | Held, Held>();

  /** How many wait, places included. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Keeps an output until `commit` is durable and all before it have left. */
  hold(commit: number, output: Output): void {
    const held = { commit, output };
    this.#waiting.set(held, held);
  }

  /** Keeps the place of the answer that `ticket` waits for. */
  keepPlace(ticket: number): void {
    this.#waiting.set(ticket, { commit: 0, output: undefined });
  }

  /** The answer that `ticket` waited for has left. */
  leavePlace(ticket: number, durable: number): void {
    this.#waiting.delete(ticket);
    this.release(durable);
  }

  /** No commit after `last` will come for what waits: it waits for that one. */
  settleFor(last: number): void {
    for (const held of this.#waiting.values()) held.commit = Math.min(held.commit, last);
  }

  /** Lets out what waited for `durable` or an earlier commit. */
  release(durable: number): void {
    for (const [key, { commit, output }] of this.#waiting) {
      if (output === undefined || commit > durable) return;
      this.#waiting.delete(key);
      queueMicrotask(() => output.leave());
    }
  }

  fail(error: RivetError): void {
    const failed = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { output } of failed) output?.fail(error);
  }
}
