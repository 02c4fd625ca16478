/** Arguments of the calls of a queue, checked. */

import { checkKeys, describe } from "../definition/keys";
import { checkedArgument, checkStorable, invalidArgument, messageOf } from "../errors";
import { unbridged } from "../native-half";

/** Options of a call: keys that are known, or refused by name. */
export function readOptions(
  given: unknown,
  method: string,
  known: readonly string[],
): Record<string, unknown> {
  const options = given ?? {};
  checkedArgument(() => checkKeys(options, { place: placeOf(method), known }));
  return options as Record<string, unknown>;
}

/** Milliseconds from 0; `undefined` for none given, and negative for ever. */
export function timeoutOf(options: Record<string, unknown>, method: string): number {
  const { timeout } = options;
  if (timeout === undefined) return -1;
  if (typeof timeout !== "number" || !(timeout >= 0)) {
    throw invalidArgument(
      `timeout of ${placeOf(method)} is ${describe(timeout)}, not milliseconds from 0`,
    );
  }
  return timeout === Number.POSITIVE_INFINITY ? -1 : timeout;
}

export function signalOf(
  options: Record<string, unknown>,
  method: string,
): AbortSignal | undefined {
  const { signal } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw invalidArgument(
      `signal of ${placeOf(method)} is ${describe(signal)}, not an AbortSignal`,
    );
  }
  return signal;
}

export function flagOf(
  options: Record<string, unknown>,
  key: "completable" | "wait",
  method: string,
): boolean {
  const flag = options[key] ?? false;
  if (typeof flag !== "boolean") {
    throw invalidArgument(`${key} of ${placeOf(method)} is ${describe(flag)}, not true or false`);
  }
  return flag;
}

/** A whole number from `least`. */
export function wholeOf(
  options: Record<string, unknown>,
  key: "count" | "limit" | "after",
  method: string,
  { least, usual }: { least: number; usual: number },
): number {
  const value = options[key] ?? usual;
  if (!Number.isSafeInteger(value) || (value as number) < least) {
    throw invalidArgument(
      `${key} of ${placeOf(method)} is ${describe(value)}, not a whole number from ${least}`,
    );
  }
  return key === "after" ? (value as number) : Math.min(value as number, MOST);
}

/** What fits in four bytes. */
const MOST = 2 ** 32 - 1;

/** How a message is sent. */
export interface SendOptions {
  readonly delayMs: number | undefined;
  readonly dedupeKey: string | undefined;
}

export function sendOptionsOf(options: Record<string, unknown>, method: string): SendOptions {
  const { dedupeKey } = options;
  if (dedupeKey !== undefined && typeof dedupeKey !== "string") {
    throw invalidArgument(
      `dedupeKey of ${placeOf(method)} is ${describe(dedupeKey)}, not a string`,
    );
  }
  if (dedupeKey !== undefined) checkStorable(dedupeKey, `dedupeKey of ${placeOf(method)}`);
  return { delayMs: delayOf(options, method), dedupeKey };
}

export function delayOf(options: Record<string, unknown>, method: string): number | undefined {
  const { delay } = options;
  if (delay === undefined) return undefined;
  if (typeof delay !== "number" || !(delay >= 0) || delay === Number.POSITIVE_INFINITY) {
    throw invalidArgument(
      `delay of ${placeOf(method)} is ${describe(delay)}, not milliseconds from 0`,
    );
  }
  return delay;
}

/** What is wrong with a message, as text. */
export function reasonOf(error: unknown): string | undefined {
  return error === undefined ? undefined : messageOf(error);
}

/** The id of a message. */
export function idOf(id: unknown, method: string): number {
  const number = typeof id === "bigint" ? Number(id) : id;
  if (!Number.isSafeInteger(number) || (number as number) < 0) {
    throw invalidArgument(`${method}() takes the id of a message, not ${describe(id)}`);
  }
  return number as number;
}

function placeOf(method: string): string {
  return `options of ${method}()`;
}

/** Errors of the native half with their fields. */
export async function plainly<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw unbridged(error);
  }
}
