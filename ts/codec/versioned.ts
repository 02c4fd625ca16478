/**
 * A state with the version of its shape, as one sequence of bytes, so that both are always stored
 * together.
 *
 * 1. Version 0 is that of bytes without a version: they are what {@link encode} writes, and so is every
 *    state that was stored before its actor had versions.
 * 2. The envelope is looked for at the beginning of the bytes only; nothing inside a value is one.
 */

import { decode, encodeWith } from "./index";
import { STATE, tagged } from "./tags";

/** A decoded state. */
export interface Versioned {
  readonly version: number;
  readonly value: unknown;
}

/** A tag of four bytes, then an array of two. */
const HEAD = Uint8Array.of(0xda, ...fourBytes(STATE), 0x82);

/**
 * Encodes a state.
 *
 * @param root names it in the error, such as `state`.
 * @throws TypeError `Value at <path> ...` for what cannot be kept.
 */
export function encodeVersioned(value: unknown, version: number, root: string): Uint8Array {
  if (version === 0) return encodeWith(value, root, (lowered) => lowered);
  return encodeWith(value, root, (lowered) => tagged(STATE, [version, lowered]));
}

/** The version of a stored state, without decoding it. */
export function versionOf(bytes: Uint8Array): number {
  return openEnvelope(bytes)?.version ?? 0;
}

/** Decodes what {@link encodeVersioned} wrote. */
export function decodeVersioned(bytes: Uint8Array): Versioned {
  const envelope = openEnvelope(bytes);
  if (envelope === undefined) return { version: 0, value: decode(bytes) };
  return { version: envelope.version, value: decode(bytes.subarray(envelope.at)) };
}

function openEnvelope(bytes: Uint8Array): { version: number; at: number } | undefined {
  if (bytes.length <= HEAD.length || HEAD.some((byte, at) => bytes[at] !== byte)) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const at = HEAD.length;
  const first = view.getUint8(at);
  // An unsigned integer: in the byte itself, or in the one, two or four bytes behind it.
  if (first < 24) return { version: first, at: at + 1 };
  if (first === 24) return { version: view.getUint8(at + 1), at: at + 2 };
  if (first === 25) return { version: view.getUint16(at + 1), at: at + 3 };
  return { version: view.getUint32(at + 1), at: at + 5 };
}

function fourBytes(number: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, number);
  return bytes;
}
