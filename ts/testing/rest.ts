/**
 * When nothing happens any more by itself: Rust has done what it can, nothing waits to begin here, and
 * every function of an author has ended or waits for time or for another actor.
 *
 * 1. A function that works for real is waited for in real time, and not for ever: what neither ends nor
 *    waits on the clock within the patience is named in an error.
 * 2. The patience begins anew with all that is seen to happen.
 */

import { RivetError } from "../errors";
import { clockwork, dispatch, type Hold } from "../native-half";
import type { Busy, Jobs } from "./jobs";

/** How long is waited for a word of real work before looking again, in milliseconds. */
const LOOK_AGAIN_MS = 5;

export class Rest {
  readonly #jobs: Jobs;
  readonly #patienceMs: number;
  readonly #holds: (actorId: string) => Promise<readonly Hold[]>;

  /** `holds` tells what keeps an actor awake. */
  constructor(
    jobs: Jobs,
    patienceMs: number,
    holds: (actorId: string) => Promise<readonly Hold[]>,
  ) {
    this.#holds = holds;
    this.#jobs = jobs;
    this.#patienceMs = patienceMs;
  }

  /**
   * Resolves when nothing happens any more without time.
   *
   * @throws rejects with `testing.stalled` (1).
   */
  async reach(): Promise<void> {
    const busy = await dispatch.drive(() => this.#reach());
    if (busy !== undefined) throw await this.#stalled(busy);
  }

  /** What the patience ended with; `undefined` when all is at rest. */
  async #reach(): Promise<Busy | undefined> {
    let since = clockwork.now();
    for (;;) {
      const { changes } = this.#jobs;
      const drained = dispatch.drain();
      await turned();
      await turned();
      if (drained || changes !== this.#jobs.changes) {
        since = clockwork.now();
        continue;
      }
      const [busy] = this.#jobs.busy();
      if (busy === undefined) return undefined;
      if (clockwork.now() - since >= this.#patienceMs) return busy;
      await this.moment();
    }
  }

  async #stalled({ live, what }: Busy): Promise<RivetError> {
    const { name, key, actorId } = live.bag.identity;
    const holds = await this.#holds(actorId);
    const why = holds.map((hold) => `${hold.what} (${hold.count})`).join(", ") || "nothing";
    return new RivetError(
      "testing",
      "stalled",
      `${what} of ${name} ${JSON.stringify(key)} works for more than ${this.#patienceMs} ms: it has not ended, and waits neither on c.clock nor for another actor; the actor is held awake by ${why}`,
      {
        actor: live.specifier,
        metadata: { name, key: key.map(String), function: what, holds },
      },
    );
  }

  /** Some real time, or less when a function begins, ends or waits. */
  async moment(): Promise<void> {
    let prevent: (() => void) | undefined;
    const over = new Promise<void>((resolve) => {
      prevent = clockwork.after(LOOK_AGAIN_MS, resolve);
    });
    try {
      await Promise.race([this.#jobs.change(), over]);
    } finally {
      prevent?.();
    }
  }
}

/** The event loop has turned. */
function turned(): Promise<void> {
  return new Promise((resolve) => {
    clockwork.setImmediate(resolve);
  });
}
