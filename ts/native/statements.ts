/**
 * The statements that one call has asked for, through a client of its own, and that have not ended:
 * its answer is not made before they have.
 *
 * 1. What is asked for once it is closed belongs to nobody: every output of the actor waits for it.
 */

export class OpenStatements {
  readonly #open = new Set<Promise<unknown>>();
  #closed = false;

  /** Whether nobody waits for what is asked for from here on (1). */
  get closed(): boolean {
    return this.#closed;
  }

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

  /** Closes it once none is open; undefined when that is so. */
  close(): Promise<void> | undefined {
    const ended = this.ended();
    if (ended !== undefined) return ended.then(() => this.close());
    this.#closed = true;
    return undefined;
  }
}
