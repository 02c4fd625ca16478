/**
 * What hooks of a start threw in this environment, for those who wait for that start here: Rust tells
 * them of the failure by a record, which names what was thrown.
 *
 * 1. A name is never used twice within the process, so a caller in another environment finds nothing
 *    rather than what somebody else's actor threw.
 * 2. Nothing is kept for long: it goes when nobody waits for anything, when the next generation of its
 *    actor begins (all who waited for the one before were told by then), or when {@link LIMIT} others
 *    came after it.
 */
import type { ErrorRecord } from "./errors.js";

/** For how many actors the last failure is kept at most. */
const LIMIT = 256;

export class StartFailures {
  #last = 0;
  /** By actor, the oldest first. */
  readonly #kept = new Map<string, { readonly name: string; readonly thrown: unknown }>();
  readonly #actors = new Map<string, string>();

  /** Of how many actors a failure is kept. */
  get size(): number {
    return this.#kept.size;
  }

  /** Keeps what a hook of an actor's start threw. Returns its name. */
  keep(actorId: string, thrown: unknown): string {
    this.forget(actorId);
    this.#last += 1;
    // Not loaded before it is needed: every start would take some milliseconds longer.
    const { threadId } = require("node:worker_threads") as typeof import("node:worker_threads");
    const name = `${threadId}:${this.#last}`;
    this.#kept.set(actorId, { name, thrown });
    this.#actors.set(name, actorId);
    if (this.#kept.size > LIMIT) {
      const [oldest] = this.#kept.keys();
      if (oldest !== undefined) this.forget(oldest);
    }
    return name;
  }

  /** What a record's error comes from. */
  causeOf({ thrown: name }: ErrorRecord): { readonly thrown: unknown } | undefined {
    const actorId = typeof name === "string" ? this.#actors.get(name) : undefined;
    return actorId === undefined ? undefined : this.#kept.get(actorId);
  }

  /** Nobody waits any more for what an actor's start threw. */
  forget(actorId: string): void {
    const kept = this.#kept.get(actorId);
    if (kept === undefined) return;
    this.#kept.delete(actorId);
    this.#actors.delete(kept.name);
  }

  /** Nobody waits for anything. */
  clear(): void {
    if (this.#kept.size === 0) return;
    this.#kept.clear();
    this.#actors.clear();
  }
}
