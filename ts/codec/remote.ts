/**
 * Values as the bytes that pass between an actor and clients elsewhere: CBOR that any client of the
 * protocol reads, without the tags of our own that {@link encode} uses.
 *
 * 1. What a client sent is walked once as it is read, so no author meets a cycle, a nesting beyond 1,000
 *    levels, or a value that is larger than its bytes: CBOR can name a part twice.
 * 2. A pair of an unknown name stays the list that it is: clients that speak CBOR do not escape theirs.
 */

import { fromCompat, toCompat } from "./compat";
import { decode, encodePlain } from "./index";

/**
 * Encodes `value` for clients. What CBOR alone would change is changed: `-0` is 0, a hole is
 * `undefined`, an error has its name and message, a date may lose a millisecond,
 * and a key `__proto__` becomes another one.
 *
 * @param root names the value in errors, such as `output`.
 * @throws TypeError `Value at <path> ...` for what cannot be sent.
 */
export function encodeRemote(value: unknown, root: string): Uint8Array {
  return encodePlain(toCompat(value, root, "cbor"));
}

/**
 * Decodes what a client sent. No bytes, or none at all, are `undefined`.
 *
 * @param root names the value in errors, such as `args`.
 * @throws TypeError `Value at <path> ...` for what no client means.
 */
export function decodeRemote(bytes: Uint8Array | null | undefined, root: string): unknown {
  // Each part of a value takes one byte at least.
  return fromCompat(decode(bytes), root, { unknown: "keep", most: bytes?.length || 1 });
}

/** Metadata of an error in the form that clients read, for JSON; nothing where there is no form for it. */
export function remoteMetadata(metadata: unknown): unknown {
  if (metadata === undefined || metadata === null) return undefined;
  try {
    return toCompat(metadata, "metadata", "json");
  } catch {
    return undefined;
  }
}
