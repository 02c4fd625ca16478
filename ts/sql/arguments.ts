/** The values that an author gives to a statement. */

import { describe } from "../definition/keys";
import { invalidArgument } from "../errors";
import {
  isBinding,
  packNamed,
  packPositional,
  type SqlBinding,
  type SqlBindings,
} from "../native-half";

/** One plain object of values is by name, anything else in order. */
export function checkArguments(args: readonly unknown[], place: string): SqlBindings {
  const [first] = args;
  if (args.length === 1 && isPlain(first)) {
    // A copy, so that what is bound is what was looked at.
    const values = { ...first };
    for (const name of Object.keys(values)) {
      if (!isBinding(values[name])) throw unbound(values[name], `value ${name} of ${place}`);
    }
    return values as Record<string, SqlBinding>;
  }
  return checkList(args, place);
}

/** Values in order. */
function checkList(args: readonly unknown[], place: string): readonly SqlBinding[] {
  for (let at = 0; at < args.length; at += 1) {
    if (!isBinding(args[at])) throw unbound(args[at], `value ${at + 1} of ${place}`);
  }
  return args as readonly SqlBinding[];
}

/** As {@link checkArguments}, packed. */
export function packArguments(args: readonly unknown[], place: string): Uint8Array | null {
  const checked = checkArguments(args, place);
  return Array.isArray(checked)
    ? packPositional(checked)
    : packNamed(checked as Record<string, SqlBinding>);
}

/** Values in order, packed. */
export function packList(args: readonly unknown[], place: string): Uint8Array | null {
  return packPositional(checkList(args, place));
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

function unbound(value: unknown, what: string): Error {
  const shown = typeof value === "bigint" ? "beyond 64 bits" : describe(value);
  return invalidArgument(`${what} is ${shown}, which SQLite cannot keep`);
}
