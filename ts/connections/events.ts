/** Arguments of events: what their schemas say of them, and their bytes for each kind of client. */

import { encode } from "../codec";
import { encodeRemote } from "../codec/remote";
import type { EventRules } from "../definition/events";
import { readingArgument } from "../errors";
import { validated } from "../schema";

/**
 * What the schema of an event makes of its arguments; at once where it can. One argument is checked as
 * itself, several as their list.
 */
export function checkedArguments(
  rules: EventRules | undefined,
  name: string,
  args: unknown[],
): unknown[] | Promise<unknown[]> {
  const schema = rules?.schema;
  if (schema === undefined) return args;
  const many = args.length > 1;
  const given = many ? args : args[0];
  const listed = (made: unknown): unknown[] => {
    if (!many) return args.length === 0 && made === undefined ? [] : [made];
    if (Array.isArray(made)) return made;
    throw new TypeError(`the schema of event ${name} makes no list of its arguments`);
  };
  const made = validated(schema, given, `event \`${name}\` payload`);
  return made instanceof Promise ? made.then(listed) : listed(made);
}

/** The bytes of arguments for clients of one kind. */
export function encodeArguments(args: unknown[], remote: boolean): Uint8Array {
  return readingArgument(() => (remote ? encodeRemote(args, "args") : encode(args, "args")));
}
