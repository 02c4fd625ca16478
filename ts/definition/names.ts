/** Names that would hide a member of a client or a handle. */

import { quoted } from "./keys";

/** What every object has, and what makes one a promise or gives it a form in JSON. */
const common: readonly string[] = [
  "then",
  "toJSON",
  ...Object.getOwnPropertyNames(Object.prototype),
];

/** Members that handles within the process do not have. No action takes their place. */
export const plannedMembers: readonly string[] = ["fetch", "webSocket", "getGatewayUrl", "reload"];

/** Members of every handle. */
export const reservedActions: readonly string[] = [
  "action",
  "connect",
  "resolve",
  "send",
  ...plannedMembers,
  ...common,
];

/** Members of every client. */
export const reservedActors: readonly string[] = [
  "get",
  "getOrCreate",
  "getForId",
  "create",
  "dispose",
  ...common,
];

/** What no name has: control characters, and half characters, which two names would share once stored. */
export const UNPRINTABLE = /[\p{Control}\p{Surrogate}]/u;

/** The most bytes of an actor's name. */
const MAX_NAME_BYTES = 64;

/** Refuses a name of an actor. */
export function checkActorName(name: string): void {
  if (reservedActors.includes(name)) {
    throw new TypeError(
      `no actor can be named ${quoted(name)}: clients have a member of that name`,
    );
  }
  if (name === "" || Buffer.byteLength(name) > MAX_NAME_BYTES || UNPRINTABLE.test(name)) {
    throw new TypeError(
      `no actor can be named ${quoted(name)}: a name has 1 to ${MAX_NAME_BYTES} bytes and no control characters`,
    );
  }
}

/** Refuses names of actions of the actor called `actor`. */
export function checkActionNames(actor: string, names: Iterable<string>): void {
  for (const name of names) {
    const parts = name.split(".");
    const first = parts[0] ?? "";
    const hidden = reservedActions.includes(first)
      ? first
      : parts.slice(1).find((part) => common.includes(part));
    if (hidden !== undefined) {
      throw new TypeError(
        `actor ${quoted(actor)} cannot have an action ${quoted(name)}: handles have a member ${quoted(hidden)}`,
      );
    }
  }
}
