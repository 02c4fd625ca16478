/**
 * What a client passes when it connects.
 *
 * 1. The parameters of a remote client are kept in the form in which they came, also when a schema made
 *    something else of them.
 */

import { decode, encode } from "../codec";
import { encodeRemote } from "../codec/remote";
import type { NativeConnection } from "../native-half";
import { readRemote } from "./remote";

/** What the client passed; undefined for nothing. */
export function decodeParams(handle: NativeConnection): unknown {
  const bytes = handle.params();
  const given = handle.isRemote() ? readRemote(bytes, "params") : decode(bytes);
  // How the protocol says that there is nothing.
  return given === null ? undefined : given;
}

/** The bytes of what a schema made of it (1). */
export function encodeParams(handle: NativeConnection, value: unknown): Uint8Array {
  return handle.isRemote() ? encodeRemote(value, "params") : encode(value, "params");
}
