/**
 * What the contract's `Schedule` has beyond Rust: promises.
 *
 * 1. A change is made when its method is called, and committed at the end of the turn in
 *    which that was, together with everything else that the turn changed.
 * 2. Arguments that come out are the receiver's own.
 */
import {
  ActorContext,
  cronDelete,
  cronEvery,
  cronHistory,
  cronJobs,
  cronSet,
  deadDelete,
  deadFires,
  deadRetry,
  type JsJobOptions,
  type JsOneShotOptions,
  Schedule,
  scheduleCancel,
  scheduleEvents,
  scheduleOnce,
  setRunWake,
} from "../../index.js";
import { unpack } from "./kv.js";
import { bagOf, belongsTo, wrote } from "./owner.js";

/** Why a schedule has an action run. */
export interface FireInfo {
  readonly kind: "at" | "cron" | "every";
  /** The id of a one-shot, the name of a job. */
  readonly id: string;
  /** Of a job. */
  readonly name?: string;
  readonly scheduledAt: number;
  readonly firedAt: number;
  /** Which attempt for this deadline it is, from 1 on. */
  readonly attempt: number;
}

/** A one-shot that is pending, or waits to be tried again. */
export interface EventRow {
  readonly id: string;
  readonly action: string;
  readonly args: Buffer;
  readonly runAt: number;
}

/** A recurring job. */
export interface JobRow {
  readonly name: string;
  readonly kind: "cron" | "every";
  readonly action: string;
  readonly args: Buffer;
  readonly nextRunAt: number;
  readonly lastRunAt?: number;
  readonly expression?: string;
  readonly timezone?: string;
  readonly intervalMs?: number;
  readonly maxHistory: number;
}

/** What became of an attempt that failed. */
export interface FaultRow {
  readonly group: string;
  readonly code: string;
  readonly message: string;
  readonly metadata?: unknown;
}

/** One attempt of a recurring job. */
export interface HistoryRow {
  readonly action: string;
  readonly scheduledAt: number;
  readonly firedAt: number;
  readonly finishedAt?: number;
  readonly attempt: number;
  readonly result: "running" | "ok" | "error" | "skipped";
  readonly error?: FaultRow;
}

/** A fire that was given up. */
export interface DeadRow {
  readonly id: string;
  readonly kind: "at" | "cron" | "every";
  readonly name?: string;
  readonly action: string;
  readonly args: Buffer;
  readonly scheduledAt: number;
  readonly firedAt: number;
  readonly diedAt: number;
  readonly attempts: number;
  readonly error: FaultRow;
}

declare module "../../index.js" {
  interface ActorContext {
    /** Sets or clears the moment at which `run` is to be active again, in milliseconds since the epoch. */
    setRunWakeAt(at?: number | null): Promise<void>;
  }

  interface Schedule {
    /** Makes a one-shot that is due in so many milliseconds; its id. */
    after(
      ms: number,
      action: string,
      args: Uint8Array,
      options?: JsOneShotOptions | null,
    ): Promise<string>;
    /** Makes a one-shot that is due at a moment, in milliseconds since the epoch; its id. */
    at(
      ms: number,
      action: string,
      args: Uint8Array,
      options?: JsOneShotOptions | null,
    ): Promise<string>;
    /** Cancels a one-shot; whether there was one. */
    cancel(id: string): Promise<boolean>;
    get(id: string): Promise<EventRow | null>;
    list(): Promise<EventRow[]>;
    /** Sets a cron job, in place of the one of its name. */
    cronSet(
      name: string,
      expression: string,
      timezone: string | null | undefined,
      action: string,
      args: Uint8Array,
      maxHistory?: number | null,
      options?: Pick<JsJobOptions, "retry"> | null,
    ): Promise<void>;
    /** Sets an interval, in place of the job of its name. */
    cronEvery(
      name: string,
      intervalMs: number,
      action: string,
      args: Uint8Array,
      maxHistory?: number | null,
      options?: Pick<JsJobOptions, "retry"> | null,
    ): Promise<void>;
    cronGet(name: string): Promise<JobRow | null>;
    cronList(): Promise<JobRow[]>;
    /** Deletes a job and its history; whether there was one. */
    cronDelete(name: string): Promise<boolean>;
    /** The attempts of a job, the newest first: at most `limit`, 20 without. */
    cronHistory(name: string, limit?: number | null): Promise<HistoryRow[]>;
    /** The fires that were given up, the newest first. */
    dead(): Promise<DeadRow[]>;
    /** Has one tried again; whether there was one. */
    deadRetry(id: string): Promise<boolean>;
    /** Forgets one; whether there was one. */
    deadDelete(id: string): Promise<boolean>;
  }
}

const methods = {
  after(
    this: Schedule,
    ms: number,
    action: string,
    args: Uint8Array,
    options?: JsOneShotOptions | null,
  ): Promise<string> {
    return once(this, (ticket) => scheduleOnce(this, ms, true, action, args, options, ticket));
  },
  at(
    this: Schedule,
    ms: number,
    action: string,
    args: Uint8Array,
    options?: JsOneShotOptions | null,
  ): Promise<string> {
    return once(this, (ticket) => scheduleOnce(this, ms, false, action, args, options, ticket));
  },
  cancel(this: Schedule, id: string): Promise<boolean> {
    return found(this, (ticket) => scheduleCancel(this, id, ticket));
  },
  async get(this: Schedule, id: string): Promise<EventRow | null> {
    const rows = await read<EventRow>(this, (ticket) => scheduleEvents(this, id, ticket));
    return rows[0] ?? null;
  },
  list(this: Schedule): Promise<EventRow[]> {
    return read(this, (ticket) => scheduleEvents(this, null, ticket));
  },
  async cronSet(
    this: Schedule,
    name: string,
    expression: string,
    timezone: string | null | undefined,
    action: string,
    args: Uint8Array,
    maxHistory?: number | null,
    options?: Pick<JsJobOptions, "retry"> | null,
  ): Promise<void> {
    const given = jobOptions(maxHistory, options);
    await change(this, (ticket) =>
      cronSet(this, name, expression, timezone, action, args, given, ticket),
    );
  },
  async cronEvery(
    this: Schedule,
    name: string,
    intervalMs: number,
    action: string,
    args: Uint8Array,
    maxHistory?: number | null,
    options?: Pick<JsJobOptions, "retry"> | null,
  ): Promise<void> {
    const given = jobOptions(maxHistory, options);
    await change(this, (ticket) => cronEvery(this, name, intervalMs, action, args, given, ticket));
  },
  async cronGet(this: Schedule, name: string): Promise<JobRow | null> {
    const rows = await read<JobRow>(this, (ticket) => cronJobs(this, name, ticket));
    return rows[0] ?? null;
  },
  cronList(this: Schedule): Promise<JobRow[]> {
    return read(this, (ticket) => cronJobs(this, null, ticket));
  },
  cronDelete(this: Schedule, name: string): Promise<boolean> {
    return found(this, (ticket) => cronDelete(this, name, ticket));
  },
  async cronHistory(this: Schedule, name: string, limit?: number | null): Promise<HistoryRow[]> {
    const rows = await read<HistoryRow>(this, (ticket) => cronHistory(this, name, limit, ticket));
    return rows.map(({ args: _, ...fire }) => fire);
  },
  dead(this: Schedule): Promise<DeadRow[]> {
    return read(this, (ticket) => deadFires(this, ticket));
  },
  deadRetry(this: Schedule, id: string): Promise<boolean> {
    return found(this, (ticket) => deadRetry(this, id, ticket));
  },
  deadDelete(this: Schedule, id: string): Promise<boolean> {
    return found(this, (ticket) => deadDelete(this, id, ticket));
  },
};

// Once, also where this module is loaded twice in one environment.
if (!Object.hasOwn(Schedule.prototype, "cronSet")) {
  Object.assign(Schedule.prototype, methods);
  const scheduleNative = ActorContext.prototype.schedule;
  ActorContext.prototype.schedule = function schedule(): Schedule {
    return belongsTo(scheduleNative.call(this), bagOf(this));
  };
  ActorContext.prototype.setRunWakeAt = async function setRunWakeAt(at?: number | null) {
    await change(this, (ticket) => setRunWake(this, at, ticket));
  };
}

function jobOptions(
  maxHistory: number | null | undefined,
  options: Pick<JsJobOptions, "retry"> | null | undefined,
): JsJobOptions {
  const given: JsJobOptions = {};
  if (typeof maxHistory === "number") given.maxHistory = maxHistory;
  if (options?.retry != null) given.retry = options.retry;
  return given;
}

async function once(schedule: Schedule, start: (ticket: number) => void): Promise<string> {
  const id = await change(schedule, start);
  return id === null ? "" : Buffer.from(id).toString("latin1");
}

async function found(schedule: Schedule, start: (ticket: number) => void): Promise<boolean> {
  return (await change(schedule, start))?.[0] === 1;
}

function change(
  object: Schedule | ActorContext,
  start: (ticket: number) => void,
): Promise<Uint8Array | null> {
  const bag = bagOf(object);
  const changed = bag.home.tickets.wait(start, { bridged: true });
  wrote(object);
  return changed;
}

/** Each row of the list, with its arguments. */
async function read<T>(
  schedule: Schedule,
  start: (ticket: number) => void,
): Promise<(T & { readonly args: Buffer })[]> {
  const packed = await bagOf(schedule).home.tickets.wait(start, { bridged: true });
  const [shown, ...args] = unpack(packed) as Buffer[];
  if (shown === undefined) return [];
  const rows = JSON.parse(shown.toString()) as T[];
  return rows.map((row, at) => ({ ...row, args: args[at] as Buffer }));
}
