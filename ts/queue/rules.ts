/** What the declaration of a queue means for a message and for a response. */

import type { Live } from "../actors/live";
import { decode, encode } from "../codec";
import { describe } from "../definition/keys";
import type { QueueRules } from "../definition/queues";
import { invalidArgument, RivetError, readingArgument } from "../errors";
import { validated } from "../schema";

/** The declaration of a queue of an actor. */
export function rulesOf(live: Live, name: unknown): QueueRules {
  if (typeof name !== "string") {
    throw invalidArgument(`the name of a queue is a string, not ${describe(name)}`);
  }
  const rules = live.definition.queues.get(name);
  if (rules === undefined) throw notDeclared(live, name);
  return rules;
}

/** `queue.not_declared`; without a name where the actor declares none at all. */
export function notDeclared(live: Live, name: string | undefined): RivetError {
  const message =
    name === undefined ? "The actor declares no queues." : `Queue \`${name}\` is not declared.`;
  return new RivetError("queue", "not_declared", message, {
    public: true,
    statusCode: 404,
    metadata: name === undefined ? undefined : { name },
    actor: live.specifier,
  });
}

/** A message as it is stored. Without a schema it is taken now, whatever becomes of it afterwards. */
export function bytesOf(
  rules: QueueRules,
  name: string,
  body: unknown,
): Uint8Array | Promise<Uint8Array> {
  const { message } = rules;
  const bytes = readingArgument(() => encode(body, "body"));
  return message === undefined ? bytes : checkedBytes(rules, name, bytes);
}

/**
 * The same of one that is encoded already. It is stored as it was sent: the schema may refuse what it
 * made of it itself, and it is asked again when the message is received.
 */
export function checkedBytes(
  rules: QueueRules,
  name: string,
  bytes: Uint8Array,
): Uint8Array | Promise<Uint8Array> {
  if (rules.message === undefined) return bytes;
  const checked = validated(rules.message, decode(bytes), `queue \`${name}\` message`);
  return checked instanceof Promise ? checked.then(() => bytes) : bytes;
}

/** What an author gets of a message that was received. */
export function bodyOf(rules: QueueRules | undefined, name: string, bytes: Uint8Array): unknown {
  const body = decode(bytes);
  const schema = rules?.message;
  return schema === undefined ? body : validated(schema, body, `queue \`${name}\` message`);
}

/** A response as it is stored; `undefined` for none. Without a schema it is taken now. */
export function responseOf(
  rules: QueueRules | undefined,
  name: string,
  response: unknown,
): Uint8Array | undefined | Promise<Uint8Array | undefined> {
  const schema = rules?.complete;
  if (schema === undefined) return encoded(response);
  const checked = validated(schema, response, `queue \`${name}\` completion response`);
  return checked instanceof Promise ? checked.then(encoded) : encoded(checked);
}

function encoded(response: unknown): Uint8Array | undefined {
  if (response === undefined) return undefined;
  return readingArgument(() => encode(response, "response"));
}
