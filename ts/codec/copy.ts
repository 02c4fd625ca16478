/**
 * Copies a value for a call within the process, which needs no bytes.
 *
 * 1. Accepts and refuses exactly what the encoder does, and the copy equals what decoding its
 *    bytes would give.
 * 2. The copy shares nothing that can change with its original; what occurs twice is copied twice.
 */

import { classify, type Kind, MAX_DEPTH } from "./classify";
import { errorFields, makeError, REFUSED, refusal, setOwn } from "./parts";
import { unwrap } from "./proxies";

/**
 * Copies `value` deeply.
 *
 * @param root names the value in the error, such as `args`.
 * @throws TypeError `Value at <path> ...` for what cannot be copied.
 */
export function copy<T>(value: T, root: string): T {
  try {
    return copyPart(value, 0) as T;
  } catch (error) {
    throw error === REFUSED ? refusal(value, root) : error;
  }
}

function copyPart(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "object":
      return value === null ? null : copyObject(unwrap(value), depth);
    case "function":
    case "symbol":
      throw REFUSED;
    default:
      return value;
  }
}

function copyObject(raw: object, depth: number): unknown {
  const kind = classify(raw);
  if (typeof kind === "object" || depth > MAX_DEPTH) throw REFUSED;
  if (kind === "object") {
    const out: Record<string, unknown> = Object.getPrototypeOf(raw) === null ? nullObject() : {};
    for (const key of Object.keys(raw)) {
      const part = copyPart((raw as Record<string, unknown>)[key], depth + 1);
      if (key === "__proto__") setOwn(out, key, part);
      else out[key] = part;
    }
    return out;
  }
  if (kind === "array") return copyArray(raw as unknown[], depth);
  return copyRare(raw, kind, depth);
}

function nullObject(): Record<string, unknown> {
  return Object.create(null);
}

function copyArray(raw: readonly unknown[], depth: number): unknown[] {
  const out: unknown[] = [];
  for (let index = 0; index < raw.length; index += 1) {
    const part = raw[index];
    if (part === undefined && !(index in raw)) return copySparse(raw, depth);
    out.push(copyPart(part, depth + 1));
  }
  return out;
}

function copySparse(raw: readonly unknown[], depth: number): unknown[] {
  const out: unknown[] = [];
  raw.forEach((part, index) => {
    out[index] = copyPart(part, depth + 1);
  });
  out.length = raw.length;
  return out;
}

function copyRare(raw: object, kind: Kind, depth: number): unknown {
  switch (kind) {
    case "date":
      return new Date(Date.prototype.getTime.call(raw));
    case "map": {
      const out = new Map<unknown, unknown>();
      for (const [key, part] of raw as Map<unknown, unknown>) {
        out.set(copyPart(key, depth + 1), copyPart(part, depth + 1));
      }
      return out;
    }
    case "set": {
      const out = new Set<unknown>();
      for (const part of raw as Set<unknown>) out.add(copyPart(part, depth + 1));
      return out;
    }
    case "regexp":
      return new RegExp((raw as RegExp).source, (raw as RegExp).flags);
    case "error":
      return makeError(errorFields(raw as Error).map(([k, v]) => [k, copyPart(v, depth + 1)]));
    case "buffer":
      // Its own `slice` would make one of its own realm.
      return viewed(new Uint8Array(raw as ArrayBuffer));
    case "view":
      return new DataView(viewed(raw as DataView));
    case "bytes":
      return isBuffer(raw) ? Buffer.from(raw) : new Uint8Array(viewed(raw as Uint8Array));
    default:
      return copyTyped(raw as ArrayBufferView);
  }
}

type TypedArrayClass = new (buffer: ArrayBuffer) => ArrayBufferView;

/** A typed array of this realm with the same elements. */
export function copyTyped(raw: ArrayBufferView): ArrayBufferView {
  const name = Object.prototype.toString.call(raw).slice(8, -1);
  // This realm's class, as decoding gives.
  const Class = (globalThis as unknown as Record<string, TypedArrayClass | undefined>)[name];
  if (Class === undefined) throw REFUSED;
  return new Class(viewed(raw));
}

/** The bytes of a view in a buffer of their own. */
export function viewed(view: ArrayBufferView): ArrayBuffer {
  const out = new ArrayBuffer(view.byteLength);
  new Uint8Array(out).set(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
  return out;
}

/** Whether a byte array is Node's `Buffer`. */
export function isBuffer(value: object): value is Buffer {
  return typeof Buffer !== "undefined" && Object.getPrototypeOf(value) === Buffer.prototype;
}
