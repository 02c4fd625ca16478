/**
 * Reads CBOR wherever JavaScript runs: what servers of the protocol send.
 *
 * 1. Bytes that are no CBOR are refused, never read as something else, and a length is believed only as
 *    far as there are bytes.
 * 2. An integer of 64 bits is a bigint, any shorter one a number. Of a tag that is not known the content
 *    is read.
 */

import { TYPED_ARRAYS, tag } from "./cbor-tags";
import { MAX_DEPTH } from "./classify";
import { makeError, setOwn } from "./parts";

/**
 * Decodes one value.
 *
 * @throws TypeError `not CBOR ...`
 */
export function readCbor(bytes: Uint8Array): unknown {
  const reader = new Reader(bytes);
  const value = reader.value(0);
  reader.end();
  return value;
}

/** Ends an item of indefinite length. */
const BREAK = Symbol("break");

class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #text = new TextDecoder();
  #at = 0;

  constructor(bytes: Uint8Array) {
    // A `Buffer` copies nothing where a `Uint8Array` does.
    this.#bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  end(): void {
    if (this.#at !== this.#bytes.length) this.#refuse("bytes follow the value");
  }

  value(depth: number): unknown {
    const value = this.#item(depth);
    if (value === BREAK) this.#refuse("it ends nothing");
    return value;
  }

  #item(depth: number): unknown {
    // Maps and arrays within maps and arrays, and the message around them.
    if (depth > MAX_DEPTH + 8) this.#refuse("it is nested too deeply");
    const first = this.#take(1)[0] as number;
    const [kind, short] = [first >> 5, first & 31];
    if (kind === 7) return this.#simple(short);
    const count = this.#count(short);
    switch (kind) {
      case 0:
        return typeof count === "bigint" ? count : this.#known(count);
      case 1:
        return typeof count === "bigint" ? -1n - count : -1 - this.#known(count);
      case 2:
        return this.#blob(count, 2);
      case 3:
        return this.#text.decode(this.#blob(count, 3));
      case 4:
        return this.#list(count, depth);
      case 5:
        return this.#object(count, depth);
      default:
        return this.#tagged(Number(this.#known(count)), depth);
    }
  }

  /** The count in a head: `undefined` for an indefinite one, a bigint for one of 64 bits. */
  #count(short: number): number | bigint | undefined {
    if (short < 24) return short;
    if (short === 31) return undefined;
    if (short > 27) this.#refuse("its length is reserved");
    const at = this.#at;
    this.#take(2 ** (short - 24));
    if (short === 24) return this.#view.getUint8(at);
    if (short === 25) return this.#view.getUint16(at);
    if (short === 26) return this.#view.getUint32(at);
    return this.#view.getBigUint64(at);
  }

  #known<T>(count: T | undefined): T {
    return count === undefined ? this.#refuse("it has no length") : count;
  }

  #simple(short: number): unknown {
    if (short === 31) return BREAK;
    const at = this.#at;
    if (short >= 24) this.#take(2 ** (short - 24));
    switch (short) {
      case 20:
        return false;
      case 21:
        return true;
      case 22:
        return null;
      case 23:
        return undefined;
      case 25:
        return half(this.#view.getUint16(at));
      case 26:
        return this.#view.getFloat32(at);
      case 27:
        return this.#view.getFloat64(at);
      default:
        return this.#refuse(`it has the unknown simple value ${short}`);
    }
  }

  #blob(count: number | bigint | undefined, kind: number): Uint8Array<ArrayBuffer> {
    if (count !== undefined) return this.#take(Number(count)).slice();
    const parts: Uint8Array[] = [];
    for (;;) {
      const first = this.#take(1)[0] as number;
      if (first === 0xff) break;
      if (first >> 5 !== kind) this.#refuse("it has a part of another kind");
      parts.push(this.#take(Number(this.#known(this.#count(first & 31)))));
    }
    const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  #list(count: number | bigint | undefined, depth: number): unknown[] {
    const list: unknown[] = [];
    for (let left = Number(count ?? -1); left !== 0; left -= 1) {
      const part = this.#item(depth + 1);
      if (part === BREAK && count === undefined) break;
      if (part === BREAK) this.#refuse("it ends too early");
      list.push(part);
    }
    return list;
  }

  #pairs(count: number | bigint | undefined, depth: number): [unknown, unknown][] {
    const flat = this.#list(count === undefined ? undefined : Number(count) * 2, depth);
    if (flat.length % 2 === 1) this.#refuse("it has a key without a value");
    return Array.from({ length: flat.length / 2 }, (_, at) => [flat[at * 2], flat[at * 2 + 1]]);
  }

  #object(count: number | bigint | undefined, depth: number): object {
    const object = {};
    for (const [key, value] of this.#pairs(count, depth)) {
      if (typeof key === "object") this.#refuse("it has a key that is no text");
      setOwn(object, String(key), value);
    }
    return object;
  }

  #tagged(number: number, depth: number): unknown {
    if (number === tag.MAP && (this.#bytes[this.#at] ?? 0) >> 5 === 5) {
      const head = this.#take(1)[0] as number;
      return new Map(this.#pairs(this.#count(head & 31), depth));
    }
    const content = this.value(depth + 1);
    if (content instanceof Uint8Array) return ofBytes(number, content as Uint8Array<ArrayBuffer>);
    if (number === tag.TIME && typeof content === "number") {
      return new Date(Math.round(content * 1_000));
    }
    if (!Array.isArray(content)) return content;
    if (number === tag.SET) return new Set(content);
    return number === tag.GENERIC ? generic(content) : content;
  }

  #take(count: number): Uint8Array<ArrayBuffer> {
    if (count > this.#bytes.length - this.#at) this.#refuse("it ends early");
    const taken = this.#bytes.subarray(this.#at, this.#at + count);
    this.#at += count;
    return taken as Uint8Array<ArrayBuffer>;
  }

  #refuse(reason: string): never {
    throw new TypeError(`not CBOR at byte ${this.#at}: ${reason}`);
  }
}

function ofBytes(number: number, bytes: Uint8Array<ArrayBuffer>): unknown {
  if (number === tag.POSITIVE || number === tag.NEGATIVE) {
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    const magnitude = BigInt(`0x${hex || "0"}`);
    return number === tag.POSITIVE ? magnitude : -1n - magnitude;
  }
  const Class = TYPED_ARRAYS.get(number);
  return Class === undefined || Class === Uint8Array ? bytes : new Class(bytes.buffer);
}

/** Regular expressions and errors; what they are not, is the list that it is. */
function generic(content: unknown[]): unknown {
  const [name, first, second] = content.map(String);
  try {
    if (name === "RegExp") return new RegExp(first ?? "", content.length > 2 ? second : "");
  } catch {
    return content;
  }
  const fields: [string, unknown][] = [
    ["name", name],
    ["message", first],
  ];
  return /Error$/.test(name ?? "") ? makeError(fields) : content;
}

/** A float of 16 bits. */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (exponent === 0) return sign * 2 ** -14 * (fraction / 1024);
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}
