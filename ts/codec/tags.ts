/**
 * The CBOR tags of our own, for values that cbor-x does not keep exactly.
 *
 * They lie far from the registered ones. A tag, once written to a disk, never changes its meaning.
 */

import { addExtension, Tag } from "./cbor-x";
import { viewed } from "./copy";
import { makeError, setOwn } from "./parts";

const BASE = 0x67_72_6e_00;

/** `-0`. Content: null. */
export const NEGATIVE_ZERO = BASE + 1;
/** A date whose milliseconds do not survive as seconds. Content: milliseconds; NaN if invalid. */
export const DATE = BASE + 2;
/** A string that is not well-formed UTF-16. Content: its code units, little endian. */
export const UTF16 = BASE + 3;
/** An object with a key that cbor-x spoils or without a prototype. Content: [bare, k, v, k, v ...]. */
export const OBJECT = BASE + 4;
/** An array with holes. Content: [length, index, value, index, value ...]. */
export const SPARSE = BASE + 5;
/** An error. Content: [key, value, key, value ...]. */
export const ERROR = BASE + 6;
/** An `ArrayBuffer`. Content: its bytes. */
export const ARRAY_BUFFER = BASE + 7;
/** A `DataView`. Content: its bytes. */
export const DATA_VIEW = BASE + 8;

/** A state with its version. Content: [version, state]. Never inside a value: see `versioned.ts`. */
export const STATE = BASE + 9;
/** An input of a creator in this process. Content: it. Never inside a value: see `input.ts`. */
export const INPUT = BASE + 10;

/** A value under a tag. */
export function tagged(tag: number, content: unknown): Tag {
  return new Tag(content, tag);
}

/** Never instantiated: cbor-x wants a class for each extension, ours are written as {@link Tag}. */
class Never {}

function extend(tag: number, decode: (content: never) => unknown): void {
  addExtension({
    Class: Never,
    tag,
    encode: () => {
      throw new TypeError("values of tags of our own are lowered before they are encoded");
    },
    decode,
  });
}

function pairs(flat: readonly unknown[], from: number): [never, unknown][] {
  const out: [never, unknown][] = [];
  for (let at = from; at < flat.length; at += 2) out.push([flat[at] as never, flat[at + 1]]);
  return out;
}

extend(NEGATIVE_ZERO, () => -0);
extend(DATE, (ms: number) => new Date(ms));
extend(UTF16, (bytes: Uint8Array) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let out = "";
  for (let at = 0; at < view.byteLength; at += 2) {
    out += String.fromCharCode(view.getUint16(at, true));
  }
  return out;
});
extend(OBJECT, (flat: unknown[]) => {
  const out: object = flat[0] === true ? Object.create(null) : {};
  for (const [key, value] of pairs(flat, 1)) setOwn(out, key, value);
  return out;
});
extend(SPARSE, (flat: unknown[]) => {
  const out: unknown[] = [];
  for (const [index, value] of pairs(flat, 1)) out[index] = value;
  out.length = flat[0] as number;
  return out;
});
extend(ERROR, (flat: unknown[]) => makeError(pairs(flat, 0)));
extend(ARRAY_BUFFER, (bytes: Uint8Array) => viewed(bytes));
extend(DATA_VIEW, (bytes: Uint8Array) => new DataView(viewed(bytes)));
