/**
 * Makes a value ready for cbor-x: refuses what cannot be kept, puts tags of our own where cbor-x
 * would change a value, and sees through proxies of state.
 *
 * 1. What needs no change is returned as it is, so plain data costs a look and no allocation.
 * 2. The original is never changed.
 */

import { classify, type Kind, MAX_DEPTH } from "./classify";
import { copyTyped, isBuffer, viewed } from "./copy";
import { errorFields, REFUSED } from "./parts";
import { unwrap } from "./proxies";
import * as tags from "./tags";

/** Lowers one value; throws {@link REFUSED} for what cannot be encoded. */
export function lower(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "string":
      return isWellFormed(value) ? value : tags.tagged(tags.UTF16, utf16(value));
    case "number":
      return value === 0 && Object.is(value, -0) ? tags.tagged(tags.NEGATIVE_ZERO, null) : value;
    case "object":
      return value === null ? null : lowerObject(unwrap(value), depth);
    case "function":
    case "symbol":
      throw REFUSED;
    default:
      return value;
  }
}

function lowerObject(raw: object, depth: number): unknown {
  const kind = classify(raw);
  if (typeof kind === "object" || depth > MAX_DEPTH) throw REFUSED;
  if (kind === "object") return lowerPlain(raw as Record<string, unknown>, depth);
  if (kind === "array") return lowerArray(raw as unknown[], depth);
  return lowerRare(raw, kind, depth);
}

function lowerPlain(raw: Record<string, unknown>, depth: number): unknown {
  const keys = Object.keys(raw);
  let out: Record<string, unknown> | undefined;
  let plain = Object.getPrototypeOf(raw) !== null;
  for (let at = 0; at < keys.length; at += 1) {
    const key = keys[at] as string;
    const part = raw[key];
    const lowered = lower(part, depth + 1);
    // cbor-x asks an object for its constructor, and renames __proto__.
    if (key === "__proto__" || key === "constructor" || !isWellFormed(key)) plain = false;
    if (!plain) return lowerOdd(raw, keys, depth);
    if (out !== undefined) {
      out[key] = lowered;
    } else if (differ(lowered, part)) {
      out = {};
      for (let before = 0; before < at; before += 1) {
        out[keys[before] as string] = raw[keys[before] as string];
      }
      out[key] = lowered;
    }
  }
  if (!plain) return lowerOdd(raw, keys, depth);
  return out ?? raw;
}

function lowerOdd(raw: Record<string, unknown>, keys: readonly string[], depth: number): unknown {
  const flat: unknown[] = [Object.getPrototypeOf(raw) === null];
  for (const key of keys) flat.push(lower(key, depth), lower(raw[key], depth + 1));
  return tags.tagged(tags.OBJECT, flat);
}

function lowerArray(raw: readonly unknown[], depth: number): unknown {
  let out: unknown[] | undefined;
  for (let at = 0; at < raw.length; at += 1) {
    const part = raw[at];
    if (part === undefined && !(at in raw)) return lowerSparse(raw, depth);
    const lowered = lower(part, depth + 1);
    if (out !== undefined) {
      out.push(lowered);
    } else if (differ(lowered, part)) {
      out = raw.slice(0, at);
      out.push(lowered);
    }
  }
  return out ?? raw;
}

function lowerSparse(raw: readonly unknown[], depth: number): unknown {
  const flat: unknown[] = [raw.length];
  raw.forEach((part, index) => {
    flat.push(index, lower(part, depth + 1));
  });
  return tags.tagged(tags.SPARSE, flat);
}

function lowerRare(raw: object, kind: Kind, depth: number): unknown {
  switch (kind) {
    case "date": {
      const ms = Date.prototype.getTime.call(raw);
      return exactAsSeconds(ms) && raw instanceof Date ? raw : tags.tagged(tags.DATE, ms);
    }
    case "map": {
      const out = new Map<unknown, unknown>();
      for (const [key, part] of raw as Map<unknown, unknown>) {
        out.set(lower(key, depth + 1), lower(part, depth + 1));
      }
      return out;
    }
    case "set": {
      const out = new Set<unknown>();
      for (const part of raw as Set<unknown>) out.add(lower(part, depth + 1));
      return out;
    }
    case "regexp":
      return new RegExp((raw as RegExp).source, (raw as RegExp).flags);
    case "error": {
      const flat: unknown[] = [];
      for (const [key, part] of errorFields(raw as Error)) {
        flat.push(lower(key, depth), lower(part, depth + 1));
      }
      return tags.tagged(tags.ERROR, flat);
    }
    case "buffer":
      return tags.tagged(tags.ARRAY_BUFFER, new Uint8Array(raw as ArrayBuffer));
    case "view":
      return tags.tagged(tags.DATA_VIEW, new Uint8Array(viewed(raw as DataView)));
    case "bytes":
      return isBuffer(raw) || raw instanceof Uint8Array
        ? raw
        : new Uint8Array(viewed(raw as Uint8Array));
    default:
      // cbor-x takes one of another realm for a list of numbers.
      return raw instanceof TypedArray ? raw : copyTyped(raw as ArrayBufferView);
  }
}

const TypedArray = Object.getPrototypeOf(Uint8Array) as new () => ArrayBufferView;

function differ(a: unknown, b: unknown): boolean {
  return a !== b && !Number.isNaN(a);
}

/** cbor-x writes a date as seconds, which loses a millisecond of some. */
function exactAsSeconds(ms: number): boolean {
  return new Date((ms / 1000) * 1000).getTime() === ms && !Object.is(ms, -0);
}

const wellFormed = (String.prototype as { isWellFormed?(this: string): boolean }).isWellFormed;
const loneSurrogate = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

function isWellFormed(text: string): boolean {
  return wellFormed === undefined ? !loneSurrogate.test(text) : wellFormed.call(text);
}

function utf16(text: string): Uint8Array {
  const out = new Uint8Array(text.length * 2);
  const view = new DataView(out.buffer);
  for (let at = 0; at < text.length; at += 1) view.setUint16(at * 2, text.charCodeAt(at), true);
  return out;
}
