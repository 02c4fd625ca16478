/** The registered CBOR tags that clients of the protocol use. */

export const tag = {
  /** A time, in seconds. */
  TIME: 1,
  /** An integer of any length: its bytes. */
  POSITIVE: 2,
  /** `-1` less the integer whose bytes follow. */
  NEGATIVE: 3,
  /** An object by the name of its class: regular expressions and errors. */
  GENERIC: 27,
  SET: 258,
  /** A map whose keys are any values. */
  MAP: 259,
} as const;

type TypedArrayClass = new (buffer: ArrayBuffer) => ArrayBufferView;

/** Typed arrays by their tags, those of the order that every processor in use has: little endian. */
export const TYPED_ARRAYS: ReadonlyMap<number, TypedArrayClass> = new Map<number, TypedArrayClass>([
  [64, Uint8Array],
  [68, Uint8ClampedArray],
  [69, Uint16Array],
  [70, Uint32Array],
  [71, BigUint64Array],
  [72, Int8Array],
  [77, Int16Array],
  [78, Int32Array],
  [79, BigInt64Array],
  [85, Float32Array],
  [86, Float64Array],
]);
