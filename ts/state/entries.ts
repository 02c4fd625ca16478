/**
 * Which raw object belongs to which actor's state, and its proxy.
 *
 * 1. One proxy for each raw object, made when it is first read, so `c.state.a === c.state.a`.
 * 2. A raw object belongs to one generation of one actor. Another that meets it takes a copy.
 */

import { classify } from "../codec/classify";
import { copy } from "../codec/copy";
import { noteProxy, unwrap } from "../codec/proxies";

/** What the proxies tell the generation whose state they stand for. */
export interface Owner {
  /** The state itself, to name paths in errors. */
  readonly root: unknown;
  /** What paths in errors begin with. */
  readonly called: string;
  /** Throws where no change is allowed. */
  permit(): void;
  /** Before a change: permits it and notes it. */
  change(): void;
  /** A part that cannot be watched was handed out: it may change unnoticed. */
  suspect(): void;
}

interface Entry {
  readonly owner: Owner;
  /** Whether it is watched: a plain object or an array. */
  readonly watched: boolean;
  proxy: object | undefined;
}

const entries = new WeakMap<object, Entry>();

/** Whether `raw` belongs to `owner`'s state. */
export function belongs(raw: object, owner: Owner): boolean {
  return entries.get(raw)?.owner === owner;
}

/** The owner of a raw object; `undefined` for one that is part of no state. */
export function ownerOf(raw: object): Owner | undefined {
  return entries.get(raw)?.owner;
}

/** Whether `proxy` is the one that stands for `raw`. */
export function standsFor(proxy: unknown, raw: object): boolean {
  return entries.get(raw)?.proxy === proxy;
}

/** Notes the owner of a raw object that enters a state. */
export function claim(raw: object, owner: Owner): void {
  if (!entries.has(raw)) enter(raw, owner);
}

function enter(raw: object, owner: Owner): Entry {
  const kind = classify(raw);
  const entry = { owner, watched: kind === "object" || kind === "array", proxy: undefined };
  entries.set(raw, entry);
  return entry;
}

/** The handlers, set by their module: they and this one need each other. */
export const handlers: { object: ProxyHandler<object>; array: ProxyHandler<object> } = {
  object: {},
  array: {},
};

/**
 * What an author sees of `value`, which lies at `key` of `parent`: a proxy for plain objects and
 * arrays, anything else itself.
 */
export function seen(value: unknown, owner: Owner, parent?: object, key?: PropertyKey): unknown {
  if (typeof value !== "object" || value === null) return value;
  let raw: object = unwrap(value);
  let entry = entries.get(raw);
  // Invariants of proxies forbid to hide what lies in a frozen object.
  if (entry === undefined ? !Object.isExtensible(raw) : entry.owner !== owner) {
    raw = replace(raw, parent, key);
    entry = enter(raw, owner);
  }
  entry ??= enter(raw, owner);
  if (!entry.watched) {
    owner.suspect();
    return raw;
  }
  if (entry.proxy === undefined) {
    entry.proxy = new Proxy(raw, Array.isArray(raw) ? handlers.array : handlers.object);
    noteProxy(entry.proxy, raw);
  }
  return entry.proxy;
}

/** Puts a copy in the place of an object that cannot be this state's own. */
function replace(raw: object, parent: object | undefined, key: PropertyKey | undefined): object {
  const own = copy(raw, "state");
  if (parent !== undefined && key !== undefined) {
    Object.defineProperty(parent, key, {
      value: own,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return own;
}
