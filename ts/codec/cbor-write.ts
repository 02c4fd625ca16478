/**
 * Writes CBOR wherever JavaScript runs: what `toCompat(value, root, "cbor")` gives, in the forms that the
 * published clients and `cbor-x` use.
 *
 * 1. Whole numbers of up to 32 bits are integers, other numbers and `-0` are floats, and only a bigint is an
 *    integer of 64 bits: so a reader tells both apart.
 */

import { TYPED_ARRAYS, tag } from "./cbor-tags";

const UINT = 0x00;
const NEGATIVE = 0x20;
const BYTES = 0x40;
const TEXT = 0x60;
const ARRAY = 0x80;
const MAP = 0xa0;
const TAG = 0xc0;

const MAX_U64 = 2n ** 64n - 1n;

/**
 * Encodes one value.
 *
 * @throws TypeError for what has no form: functions and symbols, which `toCompat` refuses by path.
 */
export function writeCbor(value: unknown): Uint8Array<ArrayBuffer> {
  const writer = new Writer();
  writer.value(value);
  return writer.bytes();
}

class Writer {
  #buffer = new Uint8Array(256);
  #view = new DataView(this.#buffer.buffer);
  #length = 0;
  readonly #text = new TextEncoder();

  bytes(): Uint8Array<ArrayBuffer> {
    return this.#buffer.slice(0, this.#length);
  }

  value(value: unknown): void {
    if (typeof value === "string") this.#blob(TEXT, this.#text.encode(value));
    else if (typeof value === "number") this.#number(value);
    else if (typeof value === "boolean") this.#byte(value ? 0xf5 : 0xf4);
    else if (value === undefined) this.#byte(0xf7);
    else if (value === null) this.#byte(0xf6);
    else if (typeof value === "bigint") this.#bigint(value);
    else if (typeof value === "object") this.#object(value);
    else throw new TypeError(`a ${typeof value} has no form in CBOR`);
  }

  #object(value: object): void {
    if (Array.isArray(value)) {
      this.#list(value);
    } else if (ArrayBuffer.isView(value)) {
      this.#typed(value);
    } else if (value instanceof Map) {
      this.#head(TAG, tag.MAP);
      this.#head(MAP, value.size);
      for (const pair of value) for (const part of pair) this.value(part);
    } else if (value instanceof Set) {
      this.#head(TAG, tag.SET);
      this.#list([...value]);
    } else if (value instanceof Date) {
      this.#head(TAG, tag.TIME);
      this.#float(value.getTime() / 1_000);
    } else if (value instanceof RegExp) {
      this.#head(TAG, tag.GENERIC);
      this.#list(["RegExp", value.source, value.flags]);
    } else if (value instanceof Error) {
      this.#head(TAG, tag.GENERIC);
      this.#list([value.name, value.message]);
    } else {
      const entries = Object.entries(value);
      this.#head(MAP, entries.length);
      for (const pair of entries) for (const part of pair) this.value(part);
    }
  }

  #list(list: readonly unknown[]): void {
    this.#head(ARRAY, list.length);
    for (let at = 0; at < list.length; at += 1) this.value(list[at]);
  }

  #typed(view: ArrayBufferView): void {
    const name = Object.prototype.toString.call(view).slice(8, -1);
    const found = [...TYPED_ARRAYS].find(([, Class]) => Class.name === name);
    if (found !== undefined) this.#head(TAG, found[0]);
    this.#blob(BYTES, new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
  }

  #number(value: number): void {
    const isShort = Number.isInteger(value) && value >= -(2 ** 32) && value < 2 ** 32;
    if (isShort && !Object.is(value, -0)) {
      if (value >= 0) this.#head(UINT, value);
      else this.#head(NEGATIVE, -1 - value);
    } else {
      this.#float(value);
    }
  }

  #float(value: number): void {
    this.#byte(0xfb);
    this.#reserve(8);
    this.#view.setFloat64(this.#length, value);
    this.#length += 8;
  }

  #bigint(value: bigint): void {
    const magnitude = value < 0n ? -1n - value : value;
    if (magnitude <= MAX_U64) {
      this.#byte((value < 0n ? NEGATIVE : UINT) | 27);
      this.#reserve(8);
      this.#view.setBigUint64(this.#length, magnitude);
      this.#length += 8;
      return;
    }
    const digits = magnitude.toString(16);
    const hex = digits.length % 2 === 0 ? digits : `0${digits}`;
    const bytes = Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
    this.#head(TAG, value < 0n ? tag.NEGATIVE : tag.POSITIVE);
    this.#blob(BYTES, bytes);
  }

  #blob(kind: number, bytes: Uint8Array): void {
    this.#head(kind, bytes.length);
    this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #head(kind: number, count: number): void {
    const size = count < 24 ? 0 : count < 2 ** 8 ? 1 : count < 2 ** 16 ? 2 : 4;
    this.#byte(kind | (size === 0 ? count : size === 4 ? 26 : 23 + size));
    this.#reserve(4);
    if (size === 1) this.#view.setUint8(this.#length, count);
    else if (size === 2) this.#view.setUint16(this.#length, count);
    else if (size === 4) this.#view.setUint32(this.#length, count);
    this.#length += size;
  }

  #byte(byte: number): void {
    this.#reserve(1);
    this.#buffer[this.#length] = byte;
    this.#length += 1;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#buffer.length) return;
    const larger = new Uint8Array(Math.max(this.#buffer.length * 2, this.#length + count));
    larger.set(this.#buffer);
    this.#buffer = larger;
    this.#view = new DataView(larger.buffer);
  }
}
