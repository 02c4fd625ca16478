/** Names that would hide a member of a client or a handle. */

import type { ReservedActionName, ReservedActorName } from "../types";
import { quoted } from "./keys";

const common = [
  "then",
  "toJSON",
  "constructor",
  "toString",
  "valueOf",
  "hasOwnProperty",
  "__proto__",
] as const;

/** Members of every handle. */
export const reservedActions: readonly ReservedActionName[] = [
  "action",
  "connect",
  "send",
  "fetch",
  "webSocket",
  "resolve",
  "getGatewayUrl",
  "reload",
  ...common,
];

/** Members of every client. */
export const reservedActors: readonly ReservedActorName[] = [
  "get",
  "getOrCreate",
  "getForId",
  "create",
  "dispose",
  ...common,
];

/** The most bytes of an actor's name. */
const MAX_NAME_BYTES = 64;

/** Refuses a name of an actor. */
export function checkActorName(name: string): void {
  if (reservedActors.includes(name as ReservedActorName)) {
    throw new TypeError(
      `no actor can be named ${quoted(name)}: clients have a member of that name`,
    );
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (
    name === "" ||
    Buffer.byteLength(name) > MAX_NAME_BYTES ||
    /[\u0000-\u001f\u007f-\u009f]/.test(name)
  ) {
    throw new TypeError(
      `no actor can be named ${quoted(name)}: a name has 1 to ${MAX_NAME_BYTES} bytes and no control characters`,
    );
  }
}

/** Refuses names of actions of the actor called `actor`. */
export function checkActionNames(actor: string, names: Iterable<string>): void {
  for (const name of names) {
    const parts = name.split(".");
    const first = parts[0] as ReservedActionName;
    const hidden = reservedActions.includes(first)
      ? first
      : parts.slice(1).find((part) => (common as readonly string[]).includes(part));
    if (hidden !== undefined) {
      throw new TypeError(
        `actor ${quoted(actor)} cannot have an action ${quoted(name)}: handles have a member ${quoted(hidden)}`,
      );
    }
  }
}
