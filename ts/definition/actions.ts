/** Trees of actions, flattened to names joined by dots. */

import { describe, quoted } from "./keys";
import { UNPRINTABLE } from "./names";

/** An author's action. */
export type ActionFunction = (c: unknown, ...args: unknown[]) => unknown;

/** Whether a value is a group: a plain object. */
export function isGroup(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const proto = Object.getPrototypeOf(value);
  return proto === Object.prototype || proto === null;
}

/** Flattens a tree. `place` names it in errors, such as `actions`. */
export function flatten(tree: unknown, place: string): Map<string, ActionFunction> {
  const out = new Map<string, ActionFunction>();
  if (tree === undefined) return out;
  if (!isGroup(tree))
    throw new TypeError(`${place} of actor() is ${describe(tree)}, not an object`);
  const visit = (group: Record<string, unknown>, prefix: string): void => {
    for (const [key, value] of Object.entries(group)) {
      const name = prefix + key;
      checkName(key, name, place);
      if (typeof value === "function") {
        if (out.has(name)) throw new TypeError(`${place} has two actions named ${quoted(name)}`);
        out.set(name, value as ActionFunction);
      } else if (isGroup(value)) {
        visit(value, `${name}.`);
      } else if (value !== undefined) {
        throw new TypeError(
          `${place} has ${describe(value)} at ${quoted(name)}: neither a function nor a group`,
        );
      }
    }
  };
  visit(tree, "");
  return out;
}

function checkName(key: string, name: string, place: string): void {
  if (key === "" || UNPRINTABLE.test(key)) {
    throw new TypeError(
      `${place} has an action named ${quoted(name)}: it is empty or not printable`,
    );
  }
}
