/**
 * Array methods that run on the raw array.
 *
 * 1. A mutator announces one change, whatever it moves.
 * 2. Elements are handed to the author as proxies, and searched for by what they stand for.
 */

import { unwrap } from "../codec/proxies";
import { adopt } from "./adopt";
import { type Owner, ownerOf, seen } from "./entries";

type Method = (this: unknown, ...args: never[]) => unknown;
type Visitor = (this: unknown, value: unknown, index: number, array: unknown) => unknown;

/** The methods that are replaced, by name. */
export const arrayMethods = new Map<PropertyKey, Method>();

/** Defines a method that runs `body` on the raw array, and the builtin on anything else. */
function define<A extends unknown[]>(
  name: string | typeof Symbol.iterator,
  body: (raw: unknown[], owner: Owner, args: A, self: object) => unknown,
): void {
  const builtin = Array.prototype[name as "push"] as (...args: unknown[]) => unknown;
  const method = function (this: object, ...args: A): unknown {
    const raw = unwrap(this) as unknown[];
    const owner = ownerOf(raw);
    if (owner === undefined || !Array.isArray(raw)) return Reflect.apply(builtin, this, args);
    return body(raw, owner, args, this);
  };
  Object.defineProperty(method, "name", { value: String(name) });
  arrayMethods.set(name, method as unknown as Method);
}

/** Turns the elements of an array that is the author's own into what he may see. */
function show(out: unknown[], owner: Owner): unknown[] {
  for (let at = 0; at < out.length; at += 1) {
    const part = out[at];
    if (typeof part === "object" && part !== null) out[at] = seen(part, owner, out, at);
  }
  return out;
}

define<unknown[]>("push", (raw, owner, args) => {
  const items = args.map((item, index) => adopt(item, owner, raw, raw.length + index));
  if (items.length > 0) owner.change();
  for (const item of items) raw.push(item);
  return raw.length;
});

define<unknown[]>("unshift", (raw, owner, args) => {
  const items = args.map((item, index) => adopt(item, owner, raw, index));
  if (items.length > 0) owner.change();
  return raw.unshift(...items);
});

for (const name of ["pop", "shift"] as const) {
  define<[]>(name, (raw, owner) => {
    if (raw.length === 0) return undefined;
    owner.change();
    return seen(raw[name](), owner);
  });
}

define<[number, number, ...unknown[]]>("splice", (raw, owner, args) => {
  const items = args.slice(2).map((item) => adopt(item, owner, raw, Number(args[0])));
  owner.change();
  const removed = Reflect.apply(raw.splice, raw, [...args.slice(0, 2), ...items]);
  return show(removed, owner);
});

define<[((a: unknown, b: unknown) => number)?]>("sort", (raw, owner, [compare], self) => {
  owner.change();
  if (compare === undefined) raw.sort();
  else raw.sort((a, b) => compare(seen(a, owner), seen(b, owner)));
  return self;
});

define<[]>("reverse", (raw, owner, _args, self) => {
  owner.change();
  raw.reverse();
  return self;
});

define<[unknown, number?, number?]>("fill", (raw, owner, args, self) => {
  const value = adopt(args[0], owner, raw, args[1] ?? 0);
  owner.change();
  raw.fill(value, args[1], args[2]);
  return self;
});

define<[number, number, number?]>("copyWithin", (raw, owner, args, self) => {
  owner.change();
  raw.copyWithin(...args);
  return self;
});

for (const name of ["includes", "indexOf", "lastIndexOf"] as const) {
  define<[unknown, number?]>(name, (raw, _owner, args) => {
    const wanted = args[0];
    const target = typeof wanted === "object" && wanted !== null ? unwrap(wanted) : wanted;
    // An element may itself still be a proxy, put there inside a larger value.
    const list = raw.some(
      (part) => typeof part === "object" && part !== null && unwrap(part) !== part,
    )
      ? raw.map((part) => (typeof part === "object" && part !== null ? unwrap(part) : part))
      : raw;
    return Reflect.apply(list[name], list, [target, ...args.slice(1)]);
  });
}

const visiting = ["forEach", "map", "some", "every", "findIndex", "findLastIndex"] as const;

for (const name of visiting) {
  define<[Visitor, unknown]>(name, (raw, owner, [visit, self], array) => {
    if (typeof visit !== "function") throw new TypeError(`${String(visit)} is not a function`);
    return raw[name]((part, index) =>
      visit.call(self, seen(part, owner, raw, index), index, array),
    );
  });
}

for (const name of ["find", "findLast"] as const) {
  define<[Visitor, unknown]>(name, (raw, owner, [visit, self], array) => {
    if (typeof visit !== "function") throw new TypeError(`${String(visit)} is not a function`);
    const index = raw[name === "find" ? "findIndex" : "findLastIndex"]((part, at) =>
      visit.call(self, seen(part, owner, raw, at), at, array),
    );
    return index === -1 ? undefined : seen(raw[index], owner, raw, index);
  });
}

define<[Visitor, unknown]>("filter", (raw, owner, [visit, self], array) => {
  if (typeof visit !== "function") throw new TypeError(`${String(visit)} is not a function`);
  return show(
    raw.filter((part, index) => visit.call(self, seen(part, owner, raw, index), index, array)),
    owner,
  );
});

define<[number?, number?]>("slice", (raw, owner, args) => show(raw.slice(...args), owner));

define<[]>(Symbol.iterator, (raw, owner) => new Elements(raw, owner, false));
define<[]>("values", (raw, owner) => new Elements(raw, owner, false));
define<[]>("entries", (raw, owner) => new Elements(raw, owner, true));

/** Iterates over the elements as they are when they are reached, like the builtin. */
class Elements implements IterableIterator<unknown> {
  private at = 0;

  constructor(
    private readonly raw: readonly unknown[],
    private readonly owner: Owner,
    private readonly withIndex: boolean,
  ) {}

  next(): IteratorResult<unknown> {
    // Once at its end an iterator stays there, though the array may grow.
    if (this.at < 0 || this.at >= this.raw.length) {
      this.at = -1;
      return { done: true, value: undefined };
    }
    const index = this.at;
    this.at += 1;
    const value = seen(this.raw[index], this.owner, this.raw, index);
    return { done: false, value: this.withIndex ? [index, value] : value };
  }

  [Symbol.iterator](): this {
    return this;
  }
}

// With it come the helpers of iterators, where the platform has them.
const iteratorPrototype: object = Object.getPrototypeOf(Object.getPrototypeOf([].values()));
Object.setPrototypeOf(Elements.prototype, iteratorPrototype);
