/**
 * The traps of the proxies, one set for objects and one for arrays of all actors.
 *
 * 1. Every change through a proxy is announced to the owner before it is made.
 * 2. No raw plain object or array leaves through a trap.
 */

import { adopt, pathOf } from "./adopt";
import { arrayMethods } from "./arrays";
import { handlers, type Owner, ownerOf, seen, standsFor } from "./entries";

type Bag = Record<PropertyKey, unknown>;

/** The owner of a raw object behind a proxy. */
function ownerBehind(target: object): Owner {
  const owner = ownerOf(target);
  if (owner === undefined) throw new TypeError("a proxy of state has no owner");
  return owner;
}

function get(target: object, key: PropertyKey): unknown {
  const value = (target as Bag)[key];
  if (typeof value !== "object" || value === null) return value;
  // Inherited: the prototype itself must not become part of the state.
  if (key === "__proto__" && !Object.hasOwn(target, key)) return value;
  return seen(value, ownerBehind(target), target, key);
}

function set(target: object, key: PropertyKey, value: unknown, receiver: unknown): boolean {
  // An object that inherits from the state gets a property of its own.
  if (!standsFor(receiver, target)) return Reflect.set(target, key, value, receiver);
  const owner = ownerBehind(target);
  refuseKey(owner, target, key);
  const old = (target as Bag)[key];
  if (isSame(old, value) && Object.hasOwn(target, key)) {
    owner.permit();
    return true;
  }
  const stored = adopt(value, owner, target, key);
  owner.change();
  (target as Bag)[key] = stored;
  return true;
}

function isSame(old: unknown, value: unknown): boolean {
  return Object.is(old, value) && (typeof value !== "object" || value === null);
}

function refuseKey(owner: Owner, target: object, key: PropertyKey): void {
  if (typeof key === "symbol") {
    throw new TypeError(`Value at ${pathOf(owner, target, undefined)} has a symbol for a key`);
  }
  if (key === "__proto__" && !Object.hasOwn(target, key)) {
    throw new TypeError(`Value at ${pathOf(owner, target, key)} would replace a prototype`);
  }
  if (Array.isArray(target) && key !== "length" && !isIndex(key)) {
    throw new TypeError(`Value at ${pathOf(owner, target, key)} is a named property of an array`);
  }
}

function isIndex(key: PropertyKey): boolean {
  const number = Number(key);
  return Number.isInteger(number) && number >= 0 && number < 2 ** 32 - 1 && String(number) === key;
}

/** Whether a property stays, or becomes, one that an assignment could have made. */
function isPlain(descriptor: PropertyDescriptor, exists: boolean): boolean {
  if ("get" in descriptor || "set" in descriptor) return false;
  const { enumerable = exists, writable = exists, configurable = exists } = descriptor;
  return enumerable && writable && configurable;
}

const common: ProxyHandler<object> = {
  set,

  deleteProperty(target, key) {
    if (!Object.hasOwn(target, key)) return true;
    ownerBehind(target).change();
    return Reflect.deleteProperty(target, key);
  },

  defineProperty(target, key, descriptor) {
    const owner = ownerBehind(target);
    if (!isPlain(descriptor, Object.hasOwn(target, key))) {
      throw new TypeError(
        `Value at ${pathOf(owner, target, key)} is no plain property: it cannot be kept`,
      );
    }
    if (key !== "__proto__") refuseKey(owner, target, key);
    if (!("value" in descriptor)) {
      owner.change();
      return Reflect.defineProperty(target, key, descriptor);
    }
    const stored = adopt(descriptor.value, owner, target, key);
    owner.change();
    return Reflect.defineProperty(target, key, { ...descriptor, value: stored });
  },

  getOwnPropertyDescriptor(target, key) {
    const descriptor = Reflect.getOwnPropertyDescriptor(target, key);
    if (descriptor === undefined || !descriptor.configurable) return descriptor;
    if (typeof descriptor.value === "object" && descriptor.value !== null) {
      descriptor.value = seen(descriptor.value, ownerBehind(target), target, key);
    }
    return descriptor;
  },

  preventExtensions(target) {
    throw new TypeError(
      `Value at ${pathOf(ownerBehind(target), target, undefined)} is state and cannot be frozen or sealed`,
    );
  },

  setPrototypeOf(target) {
    throw new TypeError(
      `Value at ${pathOf(ownerBehind(target), target, undefined)} is state and keeps its prototype`,
    );
  },
};

handlers.object = { ...common, get };
handlers.array = {
  ...common,
  get(target, key) {
    const method =
      typeof key === "string" || key === Symbol.iterator ? arrayMethods.get(key) : undefined;
    return method ?? get(target, key);
  },
};
