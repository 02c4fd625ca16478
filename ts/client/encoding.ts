/**
 * How messages become bytes or text.
 *
 * 1. What is sent is encoded when it is given to the client: whoever gave it may change it meanwhile.
 */

import { readCbor } from "../codec/cbor-read";
import { writeCbor } from "../codec/cbor-write";
import { fromCompat, toCompat } from "../codec/compat";
import { clientError } from "./errors";

/** Which form messages have. */
export type EncodingName = "cbor" | "json";

/** What passes over the network. */
export type Encoded = string | Uint8Array;

/** One way to write messages and to read them. */
export interface Encoding {
  readonly name: EncodingName;
  readonly contentType: string;
  /** A value as a part of a message. `root` names it in errors. */
  lift(value: unknown, root: string): unknown;
  /** A message made of lifted parts. */
  write(message: unknown): Encoded;
  /**
   * The message that was written.
   *
   * @throws `client.malformed_response`
   */
  read(data: unknown): unknown;
}

const cbor: Encoding = {
  name: "cbor",
  contentType: "application/octet-stream",
  lift: (value, root) => toCompat(value, root, "cbor"),
  write: writeCbor,
  read: (data) => reading(() => readCbor(new Uint8Array(data as ArrayBuffer))),
};

const json: Encoding = {
  name: "json",
  contentType: "application/json",
  lift: (value, root) => toCompat(value, root, "json"),
  write: (message) => JSON.stringify(message),
  read: (data) =>
    reading(() => {
      const text = typeof data === "string" ? data : new TextDecoder().decode(data as ArrayBuffer);
      return JSON.parse(text);
    }),
};

/** The encodings by name. */
export const encodings: Readonly<Record<EncodingName, Encoding>> = { cbor, json };

function reading(read: () => unknown): unknown {
  try {
    // Metadata of errors is JSON that nobody has escaped.
    return fromCompat(read(), "message", { unknown: "keep" });
  } catch (error) {
    throw clientError("malformed_response", "the server sent what is no message", error);
  }
}

/** A frame that calls an action. */
export function actionFrame(
  encoding: Encoding,
  call: { id: bigint; name: string; args: readonly unknown[] },
): Encoded {
  const { id, name, args } = call;
  const val = { id: encoding.lift(id, "id"), name, args: encoding.lift(args, "args") };
  return encoding.write({ body: { tag: "ActionRequest", val } });
}

/** A frame that subscribes to an event, or no longer. */
export function subscriptionFrame(
  encoding: Encoding,
  eventName: string,
  subscribe: boolean,
): Encoded {
  const val = { eventName, subscribe };
  return encoding.write({ body: { tag: "SubscriptionRequest", val } });
}

/** A frame from the server, by its tag. */
export interface Frame {
  readonly tag: string;
  readonly val: Readonly<Record<string, unknown>>;
}

/** @throws `client.malformed_response` */
export function readFrame(encoding: Encoding, data: unknown): Frame {
  const message = encoding.read(data) as { body?: Frame } | null;
  const { tag, val } = message?.body ?? {};
  if (typeof tag !== "string" || typeof val !== "object" || val === null) {
    throw clientError("malformed_response", "the server sent what is no frame");
  }
  return { tag, val };
}
