/**
 * Values in the forms that clients of the protocol exchange: what JSON has not is a pair of a name that
 * begins with `$` and a content, such as `["$BigInt","5"]`.
 *
 * 1. `fromCompat(toCompat(value))` is the value again, for whatever {@link toCompat} accepts. A list
 *    that looks like a pair gets one more `$`, which is taken away again.
 * 2. What needs no change is returned as it is, and no original is ever changed.
 * 3. Nothing is lost in silence, but what {@link Carrier} says of dates and `-0`: what has no form is
 *    refused with its path.
 * 4. Nothing here needs Node: browsers run it too.
 */

import { fromBase64, toBase64 } from "./base64";
import { classify, type Kind, MAX_DEPTH, refusePrimitive } from "./classify";
import { member, shorten } from "./inspect";
import { setOwn } from "./parts";
import { unwrap } from "./proxies";

/**
 * What carries the result.
 *
 * `"json"`: `JSON.stringify`. Dates become their text there and `-0` becomes 0; maps, regular
 * expressions, errors, views, typed arrays other than `Uint8Array`, NaN and the infinities are refused.
 *
 * `"cbor"`: an encoder that has a form of its own for all of these. Only an `ArrayBuffer` becomes a
 * pair, and lists that look like pairs are escaped.
 */
export type Carrier = "json" | "cbor";

/**
 * The form of `value` that clients read.
 *
 * @param root names the value in errors, such as `args`.
 * @throws TypeError `Value at <path> ...` for what has none, cycles and nesting beyond 1,000 levels.
 */
export function toCompat(value: unknown, root: string, carrier: Carrier = "json"): unknown {
  return new Lift(root, carrier).part(value);
}

/** How {@link fromCompat} reads. */
export interface ReadOptions {
  /** Whether a pair of an unknown name is refused, the default, or kept as the list that it is. */
  readonly unknown?: "refuse" | "keep";
  /** The most parts that the value may have. Default: any number. */
  readonly most?: number;
}

/**
 * The value whose form is given.
 *
 * @param root names the value in errors, such as `output`.
 * @throws TypeError `Value at <path> ...` for pairs that nobody writes, and as {@link toCompat}.
 */
export function fromCompat(form: unknown, root: string, options: ReadOptions = {}): unknown {
  return new Read(root, options).part(form);
}

/** A walk over a value that changes some of its parts. */
abstract class Walk {
  /** The steps from the root to the part that is looked at. */
  protected readonly path: string[];
  /** The objects around it. */
  readonly #above: object[] = [];

  constructor(root: string) {
    this.path = [root];
  }

  /** What becomes of a part. */
  abstract part(value: unknown): unknown;

  protected refuse(reason: string): never {
    throw new TypeError(`Value at ${shorten(this.path)} ${reason}`);
  }

  /** Goes into `raw`; {@link leave} comes out again. Few calls for each level: a stack has an end. */
  protected enter(raw: object): void {
    if (this.#above.length > MAX_DEPTH) {
      const cyclic = this.#above.includes(raw);
      this.refuse(cyclic ? "is part of a cycle" : `is nested deeper than ${MAX_DEPTH} levels`);
    }
    this.#above.push(raw);
  }

  protected leave(): void {
    this.#above.pop();
  }

  protected object(raw: Record<string, unknown>): object {
    let out: Record<string, unknown> | undefined;
    const keys = Object.keys(raw);
    for (let at = 0; at < keys.length; at += 1) {
      const key = keys[at] as string;
      const before = raw[key];
      this.path.push(member(key));
      const after = this.part(before);
      this.path.pop();
      if (out === undefined && !Object.is(before, after)) {
        out = {};
        for (const done of keys.slice(0, at)) setOwn(out, done, raw[done]);
      }
      if (out !== undefined) setOwn(out, key, after);
    }
    return out ?? raw;
  }

  /** @param members what the parts are called in a path. */
  protected list(raw: readonly unknown[], members = ""): readonly unknown[] {
    let out: unknown[] | undefined;
    for (let at = 0; at < raw.length; at += 1) {
      const before = raw[at];
      this.path.push(`${members}[${at}]`);
      const after = this.part(before);
      this.path.pop();
      if (out === undefined && !Object.is(before, after)) out = raw.slice(0, at);
      out?.push(after);
    }
    return out ?? raw;
  }

  protected set(raw: ReadonlySet<unknown>): ReadonlySet<unknown> {
    const before = [...raw];
    const after = this.list(before, ".values()");
    return after === before ? raw : new Set(after);
  }

  protected map(raw: ReadonlyMap<unknown, unknown>): ReadonlyMap<unknown, unknown> {
    const before = [...raw.keys(), ...raw.values()];
    const after = this.list(before, ".entries()");
    if (after === before) return raw;
    return new Map(after.slice(0, raw.size).map((key, at) => [key, after[raw.size + at]]));
  }
}

class Lift extends Walk {
  readonly #json: boolean;

  constructor(root: string, carrier: Carrier) {
    super(root);
    this.#json = carrier === "json";
  }

  part(value: unknown): unknown {
    if (typeof value === "object") return value === null ? null : this.#object(unwrap(value));
    const reason = refusePrimitive(value);
    if (reason !== undefined) this.refuse(reason);
    if (!this.#json) return value;
    if (typeof value === "bigint") return ["$BigInt", value.toString()];
    if (value === undefined) return ["$Undefined", 0];
    if (typeof value === "number" && !Number.isFinite(value)) {
      this.refuse(`is ${value}, for which JSON has no form`);
    }
    return value;
  }

  #object(raw: object): unknown {
    const kind = classify(raw);
    if (typeof kind === "object") this.refuse(kind.reason);
    this.enter(raw);
    const form =
      kind === "object" ? this.object(raw as Record<string, unknown>) : this.#other(raw, kind);
    this.leave();
    return form;
  }

  #other(raw: object, kind: Kind): unknown {
    switch (kind) {
      case "array": {
        const list = this.list(raw as unknown[]);
        return isPair(raw) ? [`$${raw[0]}`, list[1]] : list;
      }
      case "buffer":
        return ["$ArrayBuffer", toBase64(new Uint8Array(raw as ArrayBuffer))];
      case "bytes":
        return this.#json ? ["$Uint8Array", toBase64(raw as Uint8Array)] : raw;
      case "set": {
        const set = this.set(raw as Set<unknown>);
        return this.#json ? ["$Set", [...set]] : set;
      }
      case "date":
        if (this.#json && Number.isNaN(Date.prototype.getTime.call(raw))) {
          this.refuse("is an invalid date, for which JSON has no form");
        }
        return raw;
      default:
        return this.#rare(raw, kind);
    }
  }

  #rare(raw: object, kind: Kind): unknown {
    if (this.#json) {
      const name = Object.prototype.toString.call(raw).slice(8, -1);
      this.refuse(`is ${/^[AEIOU]/.test(name) ? "an" : "a"} ${name}, for which JSON has no form`);
    }
    return kind === "map" ? this.map(raw as Map<unknown, unknown>) : raw;
  }
}

class Read extends Walk {
  readonly #keepUnknown: boolean;
  #left: number;

  constructor(root: string, options: ReadOptions) {
    super(root);
    this.#keepUnknown = options.unknown === "keep";
    this.#left = options.most ?? Number.POSITIVE_INFINITY;
  }

  part(form: unknown): unknown {
    this.#left -= 1;
    if (this.#left < 0) this.refuse("has more parts than were sent");
    if (typeof form !== "object" || form === null) return form;
    this.enter(form);
    const value = Array.isArray(form) ? this.#list(form) : this.#object(form);
    this.leave();
    return value;
  }

  #object(form: object): unknown {
    if (form instanceof Map) return this.map(form);
    if (form instanceof Set) return this.set(form);
    const proto = Object.getPrototypeOf(form);
    if (proto === Object.prototype || proto === null) {
      return this.object(form as Record<string, unknown>);
    }
    if (form instanceof Error) return plainError(form);
    if (isLeaf(form)) return form;
    return this.refuse("is of a kind that has no form");
  }

  #list(form: readonly unknown[]): unknown {
    if (!isPair(form)) return this.list(form);
    const [name, content] = form;
    if (name.startsWith("$$")) return [name.slice(1), this.list(form)[1]];
    switch (name) {
      case "$BigInt":
        if (typeof content === "string" && /^-?\d+$/.test(content)) return BigInt(content);
        break;
      case "$Uint8Array":
      case "$ArrayBuffer": {
        const bytes = typeof content === "string" ? fromBase64(content) : undefined;
        if (bytes !== undefined) return name === "$ArrayBuffer" ? bytes.buffer : bytes;
        break;
      }
      case "$Undefined":
        return undefined;
      case "$Set":
        // Its members stand in no list of their own: two of them are never a pair.
        if (Array.isArray(content)) return new Set(this.list(content, "[1]"));
        break;
      default:
        if (this.#keepUnknown) return this.list(form);
        return this.refuse(`is a pair of the unknown name ${JSON.stringify(name)}`);
    }
    return this.refuse(`is no content of ${name}`);
  }
}

/** Without what hangs on it, which nothing here has looked into. */
function plainError({ name, message }: Error): Error {
  const error = new Error(String(message));
  if (typeof name === "string" && name !== error.name) error.name = name;
  return error;
}

/** Whether there is nothing inside of an object. */
function isLeaf(form: object): boolean {
  return (
    form instanceof Date ||
    form instanceof RegExp ||
    form instanceof ArrayBuffer ||
    ArrayBuffer.isView(form)
  );
}

/** Whether a value reads like the form of another one. */
function isPair(value: object): value is [string, unknown] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [name] = value;
  return typeof name === "string" && name.startsWith("$");
}
