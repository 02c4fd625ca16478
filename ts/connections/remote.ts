/**
 * Values for clients outside of the process, which do not know the tags of our own: they are in the
 * forms that the published clients read.
 */

import { decode, encode } from "../codec";

/** Encodes a value for a remote client. */
export function encodeRemote(value: unknown, root: string): Uint8Array {
  return encode(value, root);
}

/** Decodes what a remote client sent. */
export function decodeRemote(bytes: Uint8Array | null | undefined): unknown {
  return decode(bytes);
}
