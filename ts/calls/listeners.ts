/** Functions that are told of something. */

/** Those of one thing. One that was added twice is told twice. */
export class Listeners<Args extends unknown[]> {
  readonly #all = new Set<{ readonly run: (...args: Args) => unknown; readonly isOnce: boolean }>();
  readonly #emptied: (() => void) | undefined;

  /** `emptied` is called when the last one is gone. */
  constructor(emptied?: () => void) {
    this.#emptied = emptied;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Adds one; returns what removes it. */
  add(run: (...args: Args) => unknown, isOnce = false): () => void {
    const entry = { run, isOnce };
    this.#all.add(entry);
    return () => {
      if (this.#all.delete(entry) && this.#all.size === 0) this.#emptied?.();
    };
  }

  /** Tells those that are there now. What one throws stops no other, and is not hidden. */
  tell(...args: Args): void {
    for (const entry of [...this.#all]) {
      if (!this.#all.has(entry)) continue;
      if (entry.isOnce) this.#all.delete(entry);
      try {
        entry.run(...args);
      } catch (error) {
        // It goes where uncaught errors go.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  /** After `once` listeners were told. */
  settle(): void {
    if (this.#all.size === 0) this.#emptied?.();
  }
}
