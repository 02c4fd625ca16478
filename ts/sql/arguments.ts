/** The values that an author gives to a statement. */

import { describe } from "../definition/keys";
import { invalidArgument } from "../errors";
import { isBinding, packNamed, packPositional, type SqlBinding } from "../native-half";

/** One plain object of values is by name, anything else in order. */
export function packArguments(args: readonly unknown[], place: string): Uint8Array | null {
  const [first] = args;
  if (args.length === 1 && isPlain(first)) {
    for (const [name, value] of Object.entries(first))
      checkValue(value, `value ${name} of ${place}`);
    return packNamed(first as Record<string, SqlBinding>);
  }
  return packList(args, place);
}

/** Values in order. */
export function packList(args: readonly unknown[], place: string): Uint8Array | null {
  args.forEach((value, at) => {
    checkValue(value, `value ${at + 1} of ${place}`);
  });
  return packPositional(args as SqlBinding[]);
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

function checkValue(value: unknown, what: string): void {
  if (isBinding(value)) return;
  const shown = typeof value === "bigint" ? "beyond 64 bits" : describe(value);
  throw invalidArgument(`${what} is ${shown}, which SQLite cannot keep`);
}
