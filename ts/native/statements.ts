/**
 * The statements of a call that have not ended: its answer is not made before they have.
 *
 * 1. A statement belongs to the call whose `c.db` was touched in the same stretch of JavaScript. Where
 *    none was, as with a client that was kept, every output of its actor waits for it instead.
 */

export class OpenStatements {
  readonly #open = new Set<Promise<unknown>>();

  /** Keeps a statement until it has ended. */
  add(statement: Promise<unknown>): void {
    this.#open.add(statement);
    const end = () => this.#open.delete(statement);
    statement.then(end, end);
  }

  /** Resolves when those that are open have ended, however; undefined when none is. */
  ended(): Promise<unknown> | undefined {
    return this.#open.size === 0 ? undefined : Promise.allSettled(this.#open);
  }
}

/** Whose statements are asked for in this stretch (1). */
export class Asking {
  #asker: OpenStatements | undefined;
  readonly #forget = () => {
    this.#asker = undefined;
  };

  get asker(): OpenStatements | undefined {
    return this.#asker;
  }

  /** Until the stretch ends, these are whose statements are asked for. */
  by(asker: OpenStatements): void {
    if (this.#asker === undefined) queueMicrotask(this.#forget);
    this.#asker = asker;
  }
}
