/** What is given to `c.schedule` and `c.cron`, checked; what may be out of range is for the core. */

import { encode } from "../codec";
import { checkKeys, describe } from "../definition/keys";
import { checkedArgument, checkStorable, invalidArgument, readingArgument } from "../errors";

/** An action, with its encoded arguments. */
export interface Asked {
  readonly action: string;
  readonly args: Uint8Array;
}

/** A retry as the native half has it. */
export interface NativeRetry {
  maxAttempts: number;
  initialMs?: number;
  maxMs?: number;
}

/** The options of a one-shot as the native half has them. */
export interface OneShotOptions {
  key?: string;
  retry?: NativeRetry;
}

/** The action and options of `after` and `at`, in either form. */
export function readShot(
  method: string,
  given: unknown,
  args: readonly unknown[],
): Asked & { readonly options: OneShotOptions | undefined } {
  if (typeof given === "string") return { ...asked(given, args, method), options: undefined };
  const place = `${method}()`;
  if (typeof given !== "object" || given === null) {
    throw invalidArgument(`${place} takes an action, not ${describe(given)}`);
  }
  const call = checked(given, place, ["action", "args", "retry", "key"]);
  if (args.length > 0) throw invalidArgument(`${place} takes args in its object, not after it`);
  const options: OneShotOptions = {};
  if (call.key !== undefined) {
    options.key = text(call.key, "key", place);
    checkStorable(options.key, `key of ${place}`);
  }
  const retry = readRetry(call.retry, place);
  if (retry !== undefined) options.retry = retry;
  return { ...asked(call.action, call.args, method), options };
}

/** What both kinds of jobs have. */
export interface AskedJob extends Asked {
  readonly name: string;
  readonly maxHistory: number | undefined;
  readonly options: { retry?: NativeRetry } | undefined;
}

/** A cron job. */
export function readCron(
  given: unknown,
): AskedJob & { readonly expression: string; readonly timezone: string | undefined } {
  const place = "cron.set()";
  const job = checked(given, place, [...jobKeys, "expression", "timezone"]);
  const { timezone } = job;
  return {
    ...readJob(job, "cron.set"),
    expression: text(job.expression, "expression", place),
    timezone: timezone === undefined ? undefined : text(timezone, "timezone", place),
  };
}

/** An interval. */
export function readEvery(given: unknown): AskedJob & { readonly interval: number } {
  const place = "cron.every()";
  const job = checked(given, place, [...jobKeys, "interval"]);
  return { ...readJob(job, "cron.every"), interval: finite(job.interval, "interval", place) };
}

/** An id or a name. */
export function readId(given: unknown, method: string): string {
  if (typeof given === "string") return given;
  throw invalidArgument(`${method}() takes a string, not ${describe(given)}`);
}

/** The limit of a history. */
export function readLimit(given: unknown): number | undefined {
  const place = "options of cron.history()";
  const { limit } = checked(given ?? {}, place, ["limit"]);
  return limit === undefined ? undefined : whole(limit, "limit", place);
}

/** A delay or a moment; one that is not finite is for the core to refuse. */
export function readTime(given: unknown, method: string): number {
  if (typeof given === "number") return given;
  throw invalidArgument(`${method}() takes a number of milliseconds, not ${describe(given)}`);
}

const jobKeys = ["name", "action", "args", "maxHistory", "retry"];

function readJob(job: Record<string, unknown>, method: string): AskedJob {
  const place = `${method}()`;
  const { maxHistory } = job;
  const retry = readRetry(job.retry, place);
  return {
    ...asked(job.action, job.args, method),
    name: text(job.name, "name", place),
    maxHistory: maxHistory === undefined ? undefined : whole(maxHistory, "maxHistory", place),
    options: retry === undefined ? undefined : { retry },
  };
}

function asked(action: unknown, args: unknown, method: string): Asked {
  const place = `${method}()`;
  const list = args ?? [];
  if (!Array.isArray(list))
    throw invalidArgument(`args of ${place} is ${describe(args)}, not a list`);
  return {
    action: text(action, "action", place),
    args: readingArgument(() => encode(list, "args")),
  };
}

function readRetry(given: unknown, place: string): NativeRetry | undefined {
  if (given === undefined) return undefined;
  const retry = checked(given, `retry of ${place}`, ["maxAttempts", "backoff"]);
  const out: NativeRetry = {
    maxAttempts: whole(retry.maxAttempts, "maxAttempts", `retry of ${place}`),
  };
  if (retry.backoff === undefined) return out;
  const inside = `backoff of ${place}`;
  const { initial, max } = checked(retry.backoff, inside, ["initial", "max"]);
  if (initial !== undefined) out.initialMs = finite(initial, "initial", inside);
  if (max !== undefined) out.maxMs = finite(max, "max", inside);
  return out;
}

function checked(given: unknown, place: string, known: string[]): Record<string, unknown> {
  checkedArgument(() => checkKeys(given, { place, known }));
  return given as Record<string, unknown>;
}

function text(value: unknown, what: string, place: string): string {
  if (typeof value === "string") return value;
  throw invalidArgument(`${what} of ${place} is ${describe(value)}, not a string`);
}

function finite(value: unknown, what: string, place: string): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw invalidArgument(`${what} of ${place} is ${describe(value)}, not a finite number`);
}

/** A number of things; how many there may be is for the core. */
function whole(value: unknown, what: string, place: string): number {
  if (Number.isInteger(value)) return value as number;
  throw invalidArgument(`${what} of ${place} is ${describe(value)}, not a whole number`);
}
