/**
 * A trial, as a test runtime holds it: a manual clock, seeded ids and a database in memory, which stay
 * while hosts on it crash and restart.
 *
 * From the first trial on this environment and Rust go by turns: a drain finds everything done that Rust
 * can do without JavaScript and without time.
 */
import * as native from "../../index.js";
import type { ActorBag } from "./bags.js";
import { HostHandle, parse, plainly } from "./host.js";
import type { Sessions } from "./sessions.js";
import type { Tickets } from "./tickets.js";

/** What a trial begins with. */
export interface TrialOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** A whole number; the same for the same ids. */
  readonly seed: number;
}

/** Where a process can be made to die. */
export type CrashPoint = Parameters<typeof native.crashAt>[1];

export class Trial {
  readonly #number: number;
  readonly #sessions: Sessions;
  readonly #tickets: Tickets;
  readonly #bags: ReadonlyMap<number, ActorBag>;

  constructor(
    environment: number,
    options: TrialOptions,
    sessions: Sessions,
    bags: ReadonlyMap<number, ActorBag>,
  ) {
    this.#number = plainly(() => native.openTrial(environment, JSON.stringify(options)));
    this.#sessions = sessions;
    this.#tickets = sessions.tickets;
    this.#bags = bags;
  }

  /** Milliseconds since the epoch. */
  get now(): number {
    return plainly(() => native.trialNow(this.#number));
  }

  /** In how many milliseconds the next one who waits is due; `undefined` when nobody waits. */
  get due(): number | undefined {
    const due = plainly(() => native.trialDue(this.#number));
    return due < 0 ? undefined : due;
  }

  /** Opens a host on what is stored. The one before was shut down, or crashed. */
  async openHost(): Promise<HostHandle> {
    const opened = await this.#tickets.wait((ticket) => {
      plainly(() => native.openTrialHost(this.#number, ticket));
    });
    const { host, home } = parse<{ host: number; home: number }>(opened);
    return new HostHandle(host, home, this.#sessions, this.#bags);
  }

  /**
   * Moves the clock to the next deadline within `limit` milliseconds, and wakes one who waits for it:
   * what is left of `limit`. Without one, moves it by `limit`: `undefined`.
   */
  step(limit: number): number | undefined {
    const left = plainly(() => native.stepTrial(this.#number, limit));
    return left < 0 ? undefined : left;
  }

  /** Has one more of the next commits fail. */
  failNextCommit(): void {
    plainly(() => native.failNextCommit(this.#number));
  }

  /** Resolves when the next commit has met its end; the host is to be crashed then. */
  async crashAt(point: CrashPoint): Promise<void> {
    await this.#tickets.wait(
      (ticket) => plainly(() => native.crashAt(this.#number, point, ticket)),
      { holds: false },
    );
  }

  /** Ends a host as a crash of the process would. */
  async crash(host: HostHandle): Promise<void> {
    await this.#tickets.wait((ticket) => plainly(() => native.crashHost(host.number, ticket)));
  }

  /** Forgets what is stored. */
  close(): void {
    native.closeTrial(this.#number);
  }
}
