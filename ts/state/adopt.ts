/**
 * A value enters an actor's state.
 *
 * 1. What cannot be kept is refused here, where it is assigned, with its path.
 * 2. The assigned object itself becomes part of the state; it is not copied, so `includes` and `===`
 *    on what was read back behave as with a plain object. Changes made through a reference that an
 *    author keeps are not noticed by themselves.
 * 3. No assignment closes a cycle.
 */

import { check } from "../codec/check";
import { MAX_DEPTH } from "../codec/classify";
import { copy } from "../codec/copy";
import { inspect, member } from "../codec/inspect";
import { REFUSED } from "../codec/parts";
import { isProxy, unwrap } from "../codec/proxies";
import { belongs, claim, type Owner, ownerOf } from "./entries";

/** Checks `value`, which is assigned to `key` of `target`, and gives what is to be stored. */
export function adopt(value: unknown, owner: Owner, target?: object, key?: PropertyKey): unknown {
  if (typeof value !== "object" || value === null) {
    if (typeof value === "function" || typeof value === "symbol") refuse(value, owner, target, key);
    return value;
  }
  const raw = unwrap(value);
  const known = (part: object): boolean => belongs(part, owner);
  try {
    check(raw, known);
  } catch (error) {
    if (error !== REFUSED) throw error;
    refuse(raw, owner, target, key);
  }
  const other = ownerOf(raw);
  // What is frozen, or another actor's, cannot be watched here.
  if (!Object.isExtensible(raw) || (other !== undefined && other !== owner)) {
    return copy(raw, "state");
  }
  if (target !== undefined && reaches(raw, target, 0)) {
    throw new TypeError(`Value at ${pathOf(owner, target, key)} is part of a cycle`);
  }
  if (other === undefined) {
    unwrapTop(raw);
    claim(raw, owner);
  }
  return raw;
}

function refuse(
  value: unknown,
  owner: Owner,
  target: object | undefined,
  key: PropertyKey | undefined,
): never {
  const found = inspect(value, pathOf(owner, target, key), (part) => belongs(unwrap(part), owner));
  if (found === undefined) throw new TypeError("Value of the state changed while it was read");
  throw new TypeError(`Value at ${found.path} ${found.reason}`);
}

/** Proxies at the top level of a value, as `{...c.state}` has them, are replaced by what they stand for. */
function unwrapTop(raw: object): void {
  if (Array.isArray(raw)) {
    raw.forEach((part, index) => {
      if (typeof part === "object" && part !== null && isProxy(part)) raw[index] = unwrap(part);
    });
    return;
  }
  const proto = Object.getPrototypeOf(raw);
  if (proto !== Object.prototype && proto !== null) return;
  const object = raw as Record<string, unknown>;
  for (const key of Object.keys(object)) {
    const part = object[key];
    if (typeof part === "object" && part !== null && isProxy(part) && key !== "__proto__") {
      object[key] = unwrap(part);
    }
  }
}

/** Whether `target` is found inside `value`, or a cycle that was closed behind the proxies' back. */
function reaches(value: object, target: object, depth: number): boolean {
  const raw = unwrap(value);
  if (raw === target || depth > 2 * MAX_DEPTH) return true;
  for (const part of partsOf(raw)) {
    if (typeof part === "object" && part !== null && reaches(part, target, depth + 1)) return true;
  }
  return false;
}

function partsOf(raw: object): Iterable<unknown> {
  if (Array.isArray(raw)) return raw;
  if (raw instanceof Map) return [...raw.keys(), ...raw.values()];
  if (raw instanceof Set) return raw;
  if (ArrayBuffer.isView(raw) || raw instanceof Date) return [];
  return Object.values(raw);
}

/** Where `key` of `target` lies, such as `state.users[3].name`. Searched for, so for errors only. */
export function pathOf(
  owner: Owner,
  target: object | undefined,
  key: PropertyKey | undefined,
): string {
  const { called } = owner;
  if (target === undefined) return called;
  const found = search(owner.root, target, called, 0) ?? `${called}...`;
  if (key === undefined) return found;
  const name = String(key);
  return Array.isArray(target) && /^\d+$/.test(name)
    ? `${found}[${name}]`
    : `${found}${member(name)}`;
}

function search(value: unknown, target: object, path: string, depth: number): string | undefined {
  if (typeof value !== "object" || value === null || depth > 100) return undefined;
  const raw = unwrap(value);
  if (raw === target) return path;
  if (Array.isArray(raw)) {
    for (const [index, part] of raw.entries()) {
      const found = search(part, target, `${path}[${index}]`, depth + 1);
      if (found !== undefined) return found;
    }
  } else {
    for (const [key, part] of Object.entries(raw)) {
      const found = search(part, target, `${path}${member(key)}`, depth + 1);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}
