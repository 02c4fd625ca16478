/**
 * Which values actors may keep and exchange.
 *
 * 1. The copier, the encoder and the check at assignment all decide here, so that they accept and
 *    refuse the same values.
 * 2. Only builtins themselves pass, from any realm. Instances of subclasses and of an author's
 *    classes would come back as something else and are refused; errors keep name and fields, and
 *    lose only their class.
 */

/** How the inside of an accepted object is reached. */
export type Kind =
  | "object"
  | "array"
  | "map"
  | "set"
  | "date"
  | "regexp"
  | "error"
  | "bytes"
  | "buffer"
  | "view"
  | "typed";

/** An object that is refused, and why; ends the sentence "Value at x ...". */
export interface Refused {
  readonly reason: string;
}

/** The deepest nesting that is accepted. A list that links its elements reaches it, data does not. */
export const MAX_DEPTH = 1_000;

/** Decides about an object that is no proxy of state. */
export function classify(value: object): Kind | Refused {
  const proto: object | null = Object.getPrototypeOf(value);
  if (proto === Object.prototype || proto === null) return "object";
  if (Array.isArray(value)) {
    return proto === Array.prototype || levels(proto) === 2 ? "array" : instance(value);
  }
  return classifyRare(value, proto);
}

/** Why a value that is no object is refused; `undefined` when it is accepted. */
export function refusePrimitive(value: unknown): string | undefined {
  if (typeof value === "function") return "is a function";
  if (typeof value === "symbol") return "is a symbol";
  return undefined;
}

function classifyRare(value: object, proto: object): Kind | Refused {
  if (ArrayBuffer.isView(value)) return classifyView(value, proto);
  const name = builtinName(value);
  switch (name) {
    case "Object":
      // The root prototype of another realm; what Object.create(null) inherits is none.
      return levels(proto) === 1 && Object.hasOwn(proto, "hasOwnProperty")
        ? "object"
        : instance(value);
    case "Map":
      return levels(proto) === 2 ? "map" : instance(value);
    case "Set":
      return levels(proto) === 2 ? "set" : instance(value);
    case "Date":
      return levels(proto) === 2 ? "date" : instance(value);
    case "RegExp":
      return levels(proto) === 2 ? "regexp" : instance(value);
    case "ArrayBuffer":
      return levels(proto) === 2 ? "buffer" : instance(value);
    case "Error":
      return "error";
    case "Promise":
      return { reason: "is a promise; await it first" };
    default:
      return value instanceof Error ? "error" : instance(value);
  }
}

function classifyView(value: ArrayBufferView, proto: object): Kind | Refused {
  if (value instanceof DataView || builtinName(value) === "DataView") {
    return levels(proto) === 2 ? "view" : instance(value);
  }
  if (typeof Buffer !== "undefined" && proto === Buffer.prototype) return "bytes";
  if (levels(proto) !== 3) return instance(value);
  return builtinName(value) === "Uint8Array" ? "bytes" : "typed";
}

/** The number of prototypes from `proto` to the end of its chain. */
function levels(proto: object | null): number {
  let count = 0;
  for (let at = proto; at !== null; at = Object.getPrototypeOf(at)) count += 1;
  return count;
}

const sizeOfMap = getter(Map.prototype, "size");
const sizeOfSet = getter(Set.prototype, "size");
const lengthOfBuffer = getter(ArrayBuffer.prototype, "byteLength");
const sourceOfRegExp = getter(RegExp.prototype, "source");

/** The builtin that made `value`, checked by what only its instances can answer. */
function builtinName(value: object): string {
  const name = Object.prototype.toString.call(value).slice(8, -1);
  try {
    if (name === "Map") sizeOfMap.call(value);
    else if (name === "Set") sizeOfSet.call(value);
    else if (name === "Date") Date.prototype.getTime.call(value);
    else if (name === "RegExp") sourceOfRegExp.call(value);
    else if (name === "ArrayBuffer") lengthOfBuffer.call(value);
  } catch {
    return "";
  }
  return name;
}

function getter(proto: object, name: string): (this: unknown) => unknown {
  const found = Object.getOwnPropertyDescriptor(proto, name)?.get;
  if (found === undefined) throw new TypeError(`${name} is no accessor of this engine`);
  return found;
}

function instance(value: object): Refused {
  let name: unknown;
  try {
    name = (value as { constructor?: { name?: unknown } }).constructor?.name;
  } catch {
    name = undefined;
  }
  const what = typeof name === "string" && name !== "" && name !== "Object" ? name : undefined;
  const article = what !== undefined && /^[AEIOU]/.test(what) ? "an" : "a";
  if (what?.startsWith("Weak")) return { reason: `is ${article} ${what}` };
  return {
    reason:
      what === undefined ? "has a prototype of its own" : `is an instance of the class ${what}`,
  };
}
