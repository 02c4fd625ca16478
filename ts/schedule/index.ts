/**
 * `c.schedule` and `c.cron`: what an actor is to do later.
 *
 * 1. No method throws: what is wrong with an argument is the promise's.
 * 2. Arguments are encoded when the method is called, so that what changes afterwards does not.
 */

import type { Waiter } from "../actors/waiter";
import { written } from "../actors/written";
import { decode } from "../codec";
import { type NativeSchedule, unbridged } from "../native-half";
import type {
  ActorCron,
  ActorSchedule,
  CronFire,
  CronJobInfo,
  DeadFireInfo,
  DeadFires,
  ScheduledEventInfo,
} from "../types";
import { readCron, readEvery, readId, readLimit, readShot, readTime } from "./read";

/** How the native half is reached, and who is told of waits for it. */
export interface Scheduling extends Waiter {
  native(): NativeSchedule;
}

export class Schedule implements ActorSchedule {
  readonly #scheduling: Scheduling;
  readonly dead: DeadFires;

  constructor(scheduling: Scheduling) {
    this.#scheduling = scheduling;
    this.dead = new Dead(scheduling);
  }

  after(ms: number, given: unknown, ...args: unknown[]): Promise<string> {
    return change(this.#scheduling, (native) => {
      const delay = readTime(ms, "schedule.after");
      const { action, args: bytes, options } = readShot("schedule.after", given, args);
      return native.after(delay, action, bytes, options);
    });
  }

  at(timestamp: number, given: unknown, ...args: unknown[]): Promise<string> {
    return change(this.#scheduling, (native) => {
      const moment = readTime(timestamp, "schedule.at");
      const { action, args: bytes, options } = readShot("schedule.at", given, args);
      return native.at(moment, action, bytes, options);
    });
  }

  cancel(id: string): Promise<boolean> {
    return change(this.#scheduling, (native) => native.cancel(readId(id, "schedule.cancel")));
  }

  async get(id: string): Promise<ScheduledEventInfo | undefined> {
    const found = await run(this.#scheduling, (native) => native.get(readId(id, "schedule.get")));
    return found === null ? undefined : withArgs(found);
  }

  async list(): Promise<ScheduledEventInfo[]> {
    return (await run(this.#scheduling, (native) => native.list())).map(withArgs);
  }
}

class Dead implements DeadFires {
  readonly #scheduling: Scheduling;

  constructor(scheduling: Scheduling) {
    this.#scheduling = scheduling;
  }

  async list(): Promise<DeadFireInfo[]> {
    return (await run(this.#scheduling, (native) => native.dead())).map(withArgs);
  }

  retry(id: string): Promise<boolean> {
    return change(this.#scheduling, (native) =>
      native.deadRetry(readId(id, "schedule.dead.retry")),
    );
  }

  delete(id: string): Promise<boolean> {
    return change(this.#scheduling, (native) =>
      native.deadDelete(readId(id, "schedule.dead.delete")),
    );
  }
}

export class Cron implements ActorCron {
  readonly #scheduling: Scheduling;

  constructor(scheduling: Scheduling) {
    this.#scheduling = scheduling;
  }

  set(job: unknown): Promise<void> {
    return change(this.#scheduling, (native) => {
      const { name, expression, timezone, action, args, maxHistory, options } = readCron(job);
      return native.cronSet(name, expression, timezone, action, args, maxHistory, options);
    });
  }

  every(job: unknown): Promise<void> {
    return change(this.#scheduling, (native) => {
      const { name, interval, action, args, maxHistory, options } = readEvery(job);
      return native.cronEvery(name, interval, action, args, maxHistory, options);
    });
  }

  async get(name: string): Promise<CronJobInfo | undefined> {
    const found = await run(this.#scheduling, (native) => native.cronGet(readId(name, "cron.get")));
    return found === null ? undefined : jobOf(found);
  }

  async list(): Promise<CronJobInfo[]> {
    return (await run(this.#scheduling, (native) => native.cronList())).map(jobOf);
  }

  delete(name: string): Promise<boolean> {
    return change(this.#scheduling, (native) => native.cronDelete(readId(name, "cron.delete")));
  }

  history(name: string, options?: { limit?: number | undefined }): Promise<CronFire[]> {
    return run(this.#scheduling, (native) => {
      return native.cronHistory(readId(name, "cron.history"), readLimit(options));
    });
  }
}

/** What of the native half changes something. */
const changes: ReadonlySet<PropertyKey> = new Set([
  "after",
  "at",
  "cancel",
  "cronSet",
  "cronEvery",
  "cronDelete",
  "deadRetry",
  "deadDelete",
]);

/** The same schedules, whose changes begin when `over` has resolved. */
export function afterwards(native: NativeSchedule, over: Promise<void>): NativeSchedule {
  return new Proxy(native, {
    get(target, key) {
      const method: unknown = Reflect.get(target, key);
      if (typeof method !== "function") return method;
      if (!changes.has(key)) return method.bind(target);
      return (...args: unknown[]) => over.then(() => Reflect.apply(method, target, args));
    },
  });
}

/** Makes a change, as {@link run} does. */
function change<T>(
  scheduling: Scheduling,
  call: (native: NativeSchedule) => Promise<T>,
): Promise<T> {
  return written(() => run(scheduling, call));
}

/** Calls the native half (1), with its errors as an author sees them. */
async function run<T>(
  scheduling: Scheduling,
  call: (native: NativeSchedule) => Promise<T>,
): Promise<T> {
  try {
    return await scheduling.waits(call(scheduling.native()));
  } catch (error) {
    throw unbridged(error);
  }
}

function withArgs<T extends { readonly args: Uint8Array }>(
  row: T,
): Omit<T, "args"> & { args: unknown[] } {
  const args = decode(row.args);
  return { ...row, args: Array.isArray(args) ? args : [] };
}

type NativeJob = NonNullable<Awaited<ReturnType<NativeSchedule["cronGet"]>>>;

function jobOf(row: NativeJob): CronJobInfo {
  const { kind, expression = "", timezone = "", intervalMs = 0, ...rest } = withArgs(row);
  return kind === "cron"
    ? { ...rest, kind, expression, timezone }
    : { ...rest, kind, interval: intervalMs };
}
