/**
 * Values as bytes, and copies of values.
 *
 * Everything that actors keep or exchange comes back exactly as it was, or is refused with
 * `TypeError("Value at <path> ...")`: numbers with `-0`, NaN and infinities, `undefined`, bigint,
 * any string, dates to the millisecond, plain objects with any key, arrays with holes, Map, Set,
 * RegExp, ArrayBuffer, DataView, typed arrays and errors, nested anywhere. Properties that are not
 * enumerable or have a symbol for a name, and named properties of arrays, are left behind, as JSON
 * leaves them; an accessor is read. Refused are functions, symbols, promises, instances of classes,
 * weak collections and cycles.
 */

import { Encoder } from "./cbor-x";
import { lower } from "./lower";
import { REFUSED, refusal } from "./parts";

export { copy } from "./copy";
export { inspect } from "./inspect";

const cbor = new Encoder({
  useRecords: false,
  mapsAsObjects: true,
  tagUint8Array: true,
  copyBuffers: true,
  useToJSON: false,
});

/**
 * Encodes `value` as CBOR. The bytes may be a view into a larger buffer, which is never written
 * again at that place.
 *
 * @param root names the value in the error, such as `state`.
 * @throws TypeError `Value at <path> ...` for what cannot be kept.
 */
export function encode(value: unknown, root: string): Uint8Array {
  return encodeWith(value, root, (lowered) => lowered);
}

/** As {@link encode}, with what `enclose` makes of the value once it is ready for cbor-x. */
export function encodeWith(
  value: unknown,
  root: string,
  enclose: (lowered: unknown) => unknown,
): Uint8Array {
  let lowered: unknown;
  try {
    lowered = lower(value, 0);
  } catch (error) {
    throw error === REFUSED ? refusal(value, root) : error;
  }
  return cbor.encode(enclose(lowered));
}

/** Encodes what has nothing that cbor-x would spoil, or may be spoilt: see `remote.ts`. */
export function encodePlain(value: unknown): Uint8Array {
  return cbor.encode(value);
}

/** Decodes what {@link encode} wrote. No bytes, or none at all, are `undefined`. */
export function decode(bytes: Uint8Array | null | undefined): unknown {
  if (bytes === null || bytes === undefined || bytes.length === 0) return undefined;
  return cbor.decode(bytes);
}

/** Whether two encodings are the same. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  return Buffer.compare(a, b) === 0;
}
