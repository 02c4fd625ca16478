/**
 * The one queue of everything that is about to begin in this environment: calls
 * in place and jobs that were taken, in the order in which they came.
 *
 * 1. Entries begin in the order of {@link Entries.push}, so begins follow acceptance.
 * 2. No entry begins on the stack of whoever pushed it: one microtask later, or
 *    from the drain.
 * 3. A budget: after {@link BUDGET_MS} of beginning without the event loop having
 *    turned, the rest waits until it has. Chains of calls are microtasks and would
 *    otherwise starve timers, sockets and commits.
 * 4. No entry begins in the async context of a caller, or of another actor's function.
 */

import { inOwnContext, now, setImmediate } from "./clockwork.js";

/** What begins. */
export interface Entry {
  /** How much of the budget's counter it takes. */
  readonly weight: number;
  /** Begins it. Whatever it throws is a fault of the runtime. */
  begin(): void;
}

/** How long entries begin before the event loop has to turn, in milliseconds. */
export const BUDGET_MS = 2;

/** The weight after which the clock is looked at. */
const LOOK_AFTER = 32;

/** The budget of a test runtime, as weight: what happens must not depend on how fast the machine is. */
const BUDGET_WEIGHT = 10_000;

export class Entries {
  #queue: (Entry | undefined)[] = [];
  #head = 0;
  /** A microtask is on its way that begins what waits. */
  #scheduled = false;
  /** The budget is used up: what waits begins once the loop has turned. */
  #waiting = false;
  /** Set from the first entry until the loop has turned. */
  #open = false;
  #openedAt = 0;
  #weight = 0;
  /** What began since the loop turned, as weight. */
  #spent = 0;
  #counts = false;
  #wake: () => void = () => {};
  readonly #turned: () => void;

  /** `turned` is called each time the event loop has turned, if anything began before. */
  constructor(turned: () => void) {
    this.#turned = turned;
    this.#arm();
  }

  push(entry: Entry): void {
    this.#queue.push(entry);
    if (this.#scheduled || this.#waiting) return;
    this.#scheduled = true;
    this.#wake();
  }

  /**
   * Lets the next `#wake` call `#soon` one microtask later. Asked for beforehand, because what a
   * promise calls runs in the async context of whoever asked, and that must not be a caller's.
   */
  #arm(): void {
    void new Promise<void>((resolve) => {
      this.#wake = resolve;
    }).then(this.#soon);
  }

  /** From now on the budget is a weight. */
  count(): void {
    this.#counts = true;
  }

  /** Whether something is about to begin, or the loop has to turn before a turn ends. */
  get pending(): boolean {
    return this.#open || this.#head < this.#queue.length;
  }

  /** Sees to it that `turned` is called once the event loop has turned. */
  watch(): void {
    if (this.#open) return;
    this.#open = true;
    this.#openedAt = now();
    setImmediate(this.#afterTurn);
  }

  /** Begins what waits, within the budget. */
  run(): void {
    if (this.#waiting) return;
    this.watch();
    // Chains of awaited calls come one by one, and each may have taken long.
    this.#weight = LOOK_AFTER;
    while (this.#head < this.#queue.length) {
      if (this.#weight >= LOOK_AFTER) {
        this.#weight = 0;
        if (this.#isUsedUp()) {
          this.#waiting = true;
          return;
        }
      }
      const entry = this.#queue[this.#head] as Entry;
      this.#queue[this.#head++] = undefined;
      this.#weight += entry.weight;
      this.#spent += entry.weight;
      begin(entry);
    }
    if (this.#queue.length > 1024) this.#queue = [];
    else this.#queue.length = 0;
    this.#head = 0;
  }

  #isUsedUp(): boolean {
    return this.#counts ? this.#spent >= BUDGET_WEIGHT : now() - this.#openedAt >= BUDGET_MS;
  }

  readonly #soon = (): void => {
    this.#scheduled = false;
    this.#arm();
    this.run();
  };

  // The function of an actor may have asked for it, and the entries of all begin here.
  readonly #afterTurn = inOwnContext((): void => {
    this.#open = false;
    this.#weight = 0;
    this.#spent = 0;
    this.#waiting = false;
    try {
      this.#turned();
    } finally {
      if (this.#head < this.#queue.length) this.run();
    }
  });
}

/** A fault of the runtime must stop neither the others nor the queue, and must not be hidden. */
function begin(entry: Entry): void {
  try {
    entry.begin();
  } catch (fault) {
    setImmediate(() => {
      throw fault;
    });
  }
}
