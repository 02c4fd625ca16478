/** Functions that are told of something. */

/** Calls `run`; what it throws is nobody's here, so it goes where uncaught errors go. */
function safely(run: () => void): void {
  try {
    run();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** The listeners of one thing. One that was added twice is called twice. */
export class Listeners<Args extends readonly unknown[]> {
  readonly #all = new Set<{ readonly run: (...args: Args) => void }>();

  /** Adds a listener; returns what removes it. */
  add(run: (...args: Args) => void): () => void {
    const entry = { run };
    this.#all.add(entry);
    return () => {
      this.#all.delete(entry);
    };
  }

  get size(): number {
    return this.#all.size;
  }

  /** Tells those that are there now. */
  tell(...args: Args): void {
    for (const { run } of [...this.#all]) safely(() => run(...args));
  }
}
