/** What an actor is to do later, as types. */

import type { ActionArgs, ActionAt, ActionName } from "./actions";

/** Why a scheduled action runs: its extra last argument, after all others. */
export interface ScheduledFireInfo {
  /** A one-shot, a cron job, an interval. */
  readonly kind: "at" | "cron" | "every";
  /** The id of a one-shot, the name of a job. */
  readonly id: string;
  /** The name of a job; a one-shot has none. */
  readonly name?: string;
  /** When it was due, in milliseconds since the epoch. */
  readonly scheduledAt: number;
  /** When it was taken, in milliseconds since the epoch. */
  readonly firedAt: number;
  /** Which attempt for this deadline it is, from 1 on. */
  readonly attempt: number;
}

/** How a fire that fails is tried again, with the same arguments. */
export interface ScheduleRetry {
  /** How often it is tried in all, 1 to 1,000. */
  maxAttempts: number;
  /** How long it waits in between, in milliseconds, twice as long after each further failure. */
  backoff?: {
    /** The first wait. Default 1,000. */
    initial?: number | undefined;
    /** The longest wait. Default 60,000. */
    max?: number | undefined;
  };
}

/**
 * Where names are known and nothing else: the contexts within a definition, whose actions could not be
 * inferred if their own context had their types. Every tree with these names may stand in its place.
 */
export type ActionNames<N extends string> = { readonly [K in N]: unknown };

/** The key of what exists for the compiler only. */
export declare const names: unique symbol;

/**
 * Has the compiler compare what schedules accept, member by member, wherever one context stands in for
 * another: by the types of actions alone none could.
 */
export type NamesOf<A> = { readonly [K in keyof A & string]?: unknown };

/** Whether nothing is known of actions: then any name is taken. */
type IsOpen<A> = [A] extends [never] ? true : unknown extends A ? true : false;

/** Whether it is {@link ActionNames}. */
type IsNames<A> = unknown extends A[keyof A] ? true : false;

/** The names that a schedule may have, of a tree of actions or of {@link ActionNames}. */
export type ScheduleName<A> =
  IsOpen<A> extends true
    ? string
    : IsNames<A> extends true
      ? (keyof A & string) | `${keyof A & string}.${string}`
      : ActionName<A>;

/** The arguments of a scheduled action, without the {@link ScheduledFireInfo} at the end. */
export type ScheduleArgs<A, N extends string> =
  IsOpen<A> extends true
    ? unknown[]
    : IsNames<A> extends true
      ? unknown[]
      : WithoutFire<ActionArgs<ActionAt<A, N>>>;

type WithoutFire<T extends readonly unknown[]> = T extends readonly []
  ? []
  : Required<T> extends readonly [infer Only]
    ? IsFire<Only> extends true
      ? []
      : T
    : T extends readonly [infer Head, ...infer Rest]
      ? [Head, ...WithoutFire<Rest>]
      : number extends T["length"]
        ? T
        : T extends readonly [(infer Head)?, ...infer Rest]
          ? [Head?, ...WithoutFire<Rest>]
          : T;

type IsFire<T> = 0 extends 1 & T ? false : [T] extends [ScheduledFireInfo] ? true : false;

/** Arguments, which may be left out where there need not be any. */
type Given<Args> = [] extends Args
  ? {
      /** The arguments. Default none. */
      args?: Args | undefined;
    }
  : {
      /** The arguments. */
      args: Args;
    };

/** A one-shot with more than an action and its arguments. */
export type ScheduledCall<A, N extends ScheduleName<A>> = Given<ScheduleArgs<A, N>> & {
  /** The action, groups joined by dots. */
  action: N;
  /** How it is tried again when it fails. Without, it runs at most once. */
  retry?: ScheduleRetry | undefined;
  /**
   * Makes it idempotent: while one of the key is not finished, asking again gives its id and changes
   * nothing. 1 to 128 bytes of UTF-8.
   */
  key?: string | undefined;
};

/** What every recurring job has. */
type Recurring<A, N extends ScheduleName<A>> = Given<ScheduleArgs<A, N>> & {
  /** Names the job within its actor, 1 to 128 bytes of UTF-8. A job of the name is replaced. */
  name: string;
  /** The action, groups joined by dots. */
  action: N;
  /** How many attempts are kept for `history`, 0 to 1,000. Default 100. */
  maxHistory?: number | undefined;
  /** How a fire is tried again when it fails. Without, the next one is the next deadline's. */
  retry?: ScheduleRetry | undefined;
};

/**
 * The one argument of a method. By way of a condition, so that contexts of which one knows names and the
 * other arguments are compared as those of {@link ActorSchedule.after} are.
 */
type Only<A, Job> = IsOpen<A> extends true ? [job: Job] : [job: Job];

/** A job by the clock on the wall. */
export type CronJob<A, N extends ScheduleName<A>> = Recurring<A, N> & {
  /** Minute, hour, day of the month, month, day of the week. */
  expression: string;
  /** A zone of the IANA database, such as `Europe/Berlin`. Default `UTC`. */
  timezone?: string | undefined;
};

/** A job after each interval. */
export type EveryJob<A, N extends ScheduleName<A>> = Recurring<A, N> & {
  /** In milliseconds, 5,000 at least. The first fire is one interval from now. */
  interval: number;
};

/** A one-shot that is pending, or waits to be tried again. */
export interface ScheduledEventInfo {
  /** Its id. */
  readonly id: string;
  /** The action, groups joined by dots. */
  readonly action: string;
  /** Its arguments. */
  readonly args: unknown[];
  /** When it is due, in milliseconds since the epoch. */
  readonly runAt: number;
}

/** A fire that was given up: it failed for the last time, or its process ended while it ran. */
export interface DeadFireInfo {
  /** Its id: that of the one-shot, or one of its own. */
  readonly id: string;
  /** A one-shot, a cron job, an interval. */
  readonly kind: "at" | "cron" | "every";
  /** The name of a job; a one-shot has none. */
  readonly name?: string;
  /** The action, groups joined by dots. */
  readonly action: string;
  /** Its arguments. */
  readonly args: unknown[];
  /** When it was due, in milliseconds since the epoch. */
  readonly scheduledAt: number;
  /** When its last attempt began, in milliseconds since the epoch. */
  readonly firedAt: number;
  /** When it was given up, in milliseconds since the epoch. */
  readonly diedAt: number;
  /** How often it was tried. */
  readonly attempts: number;
  /** Why the last attempt failed; see {@link CronFire}. */
  readonly error: FireError;
}

/** Why an attempt failed, as a remote client would see it: what is not public is masked. */
export interface FireError {
  readonly group: string;
  /** Without the group; `interrupted` of `schedule` when the process ended meanwhile. */
  readonly code: string;
  readonly message: string;
  readonly metadata?: unknown;
}

/** A recurring job. */
export type CronJobInfo = {
  /** Its name. */
  readonly name: string;
  /** The action, groups joined by dots. */
  readonly action: string;
  /** Its arguments. */
  readonly args: unknown[];
  /** When it is due, in milliseconds since the epoch. */
  readonly nextRunAt: number;
  /** When it last began to run, in milliseconds since the epoch. */
  readonly lastRunAt?: number;
  /** How many attempts its history keeps. */
  readonly maxHistory: number;
} & (
  | { readonly kind: "cron"; readonly expression: string; readonly timezone: string }
  | { readonly kind: "every"; readonly interval: number }
);

/** One attempt of a recurring job. */
export interface CronFire {
  /** The action, groups joined by dots. */
  readonly action: string;
  /** When it was due, in milliseconds since the epoch. */
  readonly scheduledAt: number;
  /** When it began, in milliseconds since the epoch. */
  readonly firedAt: number;
  /** When it ended, in milliseconds since the epoch; absent while it runs. */
  readonly finishedAt?: number;
  /** Which attempt for its deadline it is, from 1 on. */
  readonly attempt: number;
  /** How it ended; `skipped` when an earlier one ran still. */
  readonly result: "running" | "ok" | "error" | "skipped";
  /** Why it failed. */
  readonly error?: FireError;
}

/** Fires that were given up: the last 1,000 of the actor. */
export interface DeadFires {
  /** All, the newest first. */
  list(): Promise<DeadFireInfo[]>;
  /**
   * Has one tried again from its first attempt on; whether there was one.
   *
   * @throws rejects with `schedule.max_schedules_exceeded`
   */
  retry(id: string): Promise<boolean>;
  /** Forgets one; whether there was one. */
  delete(id: string): Promise<boolean>;
}

/**
 * What the actor does once, later: even if it sleeps then, or the process was started anew.
 *
 * What one turn changes, here and in the state, is stored together; what a change returns resolves when
 * that is durable. All methods reject with `storage.*` when the disk fails, and with `actor.stopping`
 * after the end.
 */
export interface ActorSchedule<A = never> {
  /** For the compiler only. */
  readonly [names]?: NamesOf<A>;
  /**
   * Runs an action in `ms` milliseconds; less than 0 is 0. Gives the id.
   *
   * @throws rejects with `schedule.max_schedules_exceeded`, `schedule.invalid_time`,
   * `schedule.invalid_key`, `schedule.invalid_retry`
   */
  after<N extends ScheduleName<A>>(
    ms: number,
    action: N,
    ...args: ScheduleArgs<A, N>
  ): Promise<string>;
  after<N extends ScheduleName<A>>(ms: number, call: ScheduledCall<A, N>): Promise<string>;
  /**
   * Runs an action at a moment, in milliseconds since the epoch; at once when it has passed. Gives the
   * id.
   *
   * @throws rejects as {@link ActorSchedule.after} does
   */
  at<N extends ScheduleName<A>>(
    timestamp: number,
    action: N,
    ...args: ScheduleArgs<A, N>
  ): Promise<string>;
  at<N extends ScheduleName<A>>(timestamp: number, call: ScheduledCall<A, N>): Promise<string>;
  /** Cancels what is pending or waits to be tried again; whether there was anything to cancel. */
  cancel(id: string): Promise<boolean>;
  /** What is pending or waits to be tried again. */
  get(id: string): Promise<ScheduledEventInfo | undefined>;
  /** All of it, by the moment at which it is due. */
  list(): Promise<ScheduledEventInfo[]>;
  /** What was given up. */
  readonly dead: DeadFires;
}

/** What the actor does again and again; see {@link ActorSchedule}. */
export interface ActorCron<A = never> {
  /** For the compiler only. */
  readonly [names]?: NamesOf<A>;
  /**
   * Sets a job by the clock on the wall, in place of the one of its name. One of the same expression and
   * zone keeps its next deadline.
   *
   * @throws rejects with `schedule.invalid_name`, `schedule.invalid_timezone`,
   * `schedule.invalid_cron_expression`, `schedule.invalid_max_history`, `schedule.invalid_retry`,
   * `schedule.max_schedules_exceeded`
   */
  set<N extends ScheduleName<A>>(...job: Only<A, CronJob<A, N>>): Promise<void>;
  /**
   * Sets a job after each interval, in place of the one of its name. One of the same interval keeps its
   * next deadline.
   *
   * @throws rejects with `schedule.invalid_name`, `schedule.invalid_interval`,
   * `schedule.invalid_max_history`, `schedule.invalid_retry`, `schedule.max_schedules_exceeded`
   */
  every<N extends ScheduleName<A>>(...job: Only<A, EveryJob<A, N>>): Promise<void>;
  /**
   * The job of a name.
   *
   * @throws rejects with `schedule.invalid_name`
   */
  get(name: string): Promise<CronJobInfo | undefined>;
  /** All jobs, by the moment at which they are due. */
  list(): Promise<CronJobInfo[]>;
  /**
   * Deletes a job and its history; whether there was one.
   *
   * @throws rejects with `schedule.invalid_name`
   */
  delete(name: string): Promise<boolean>;
  /**
   * The attempts of a job, the newest first: at most `limit`, 1 to 1,000, of them. Default 20.
   *
   * @throws rejects with `schedule.invalid_name`, `schedule.invalid_max_history` for the limit
   */
  history(name: string, options?: { limit?: number | undefined }): Promise<CronFire[]>;
}
