/**
 * Which of the author's functions run, and which of them wait for something that only time or another
 * actor can bring.
 *
 * 1. A function that neither ended nor waits through its own `c` works for real: a file is read, a
 *    model is asked. Time must not go on before it has.
 * 2. Functions are told apart by whose `c` they have: a call's own, or the one of hooks and `run`. One
 *    of them works when fewer waits are open than functions.
 * 3. Whose a wait of `c.db`, `c.kv`, `c.schedule` and `c.cron` is, is not known: they are one for the
 *    generation. It is noted as the generation's, and counts for a call where hooks and `run` have enough.
 */

import type { Live, Noted } from "../actors/live";

interface Work {
  readonly live: Live;
  /** Its functions that run, the latest last. */
  readonly names: string[];
  /** How many waits are open. */
  waits: number;
}

/** A function that works for real. */
export interface Busy {
  readonly live: Live;
  readonly what: string;
}

export class Jobs implements Noted {
  readonly #work = new Map<object, Work>();
  #changes = 0;
  #wake: () => void = () => {};

  /** Grows whenever a function begins, ends, or begins or ends to wait. */
  get changes(): number {
    return this.#changes;
  }

  begin(owner: object, live: Live, what: string): () => void {
    const work = this.#of(owner, live);
    work.names.push(what);
    this.#changed();
    return () => {
      work.names.splice(work.names.lastIndexOf(what), 1);
      this.#forget(owner, work);
    };
  }

  async waits<T>(owner: object, live: Live, promise: Promise<T>): Promise<T> {
    const work = this.#of(owner, live);
    work.waits += 1;
    this.#changed();
    try {
      return await promise;
    } finally {
      work.waits -= 1;
      this.#forget(owner, work);
    }
  }

  /** Those that work for real (1), one for each actor. What a crash left behind is nobody's any more. */
  busy(): Busy[] {
    const found = new Map<Live, { work: Work | undefined; missing: number }>();
    for (const [owner, work] of this.#work) {
      const { live, names, waits } = work;
      if (live.bag.stopped !== undefined) continue;
      const own = names.length - waits;
      const all = found.get(live) ?? { work: undefined, missing: 0 };
      found.set(live, all);
      // Only the generation's own may be too many (3).
      all.missing += owner === live ? own : Math.max(0, own);
      if (own > 0) all.work ??= work;
    }
    return [...found].flatMap(([live, { work, missing }]) =>
      work === undefined || missing <= 0 ? [] : [{ live, what: work.names.at(-1) ?? "" }],
    );
  }

  /** Resolves at the next change. */
  change(): Promise<void> {
    return new Promise((resolve) => {
      const before = this.#wake;
      this.#wake = () => {
        before();
        resolve();
      };
    });
  }

  #of(owner: object, live: Live): Work {
    let work = this.#work.get(owner);
    if (work === undefined) {
      work = { live, names: [], waits: 0 };
      this.#work.set(owner, work);
    }
    return work;
  }

  #forget(owner: object, work: Work): void {
    if (work.names.length === 0 && work.waits === 0 && this.#work.get(owner) === work) {
      this.#work.delete(owner);
    }
    this.#changed();
  }

  #changed(): void {
    this.#changes += 1;
    const wake = this.#wake;
    this.#wake = () => {};
    wake();
  }
}
