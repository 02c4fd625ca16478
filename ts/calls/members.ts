/**
 * Members of handles and connections: objects whose methods are an actor's actions.
 *
 * 1. One class for each definition, with real members, so that a call costs a property and a
 *    function. What is no action is answered by the actor, which knows best (`action_not_found`).
 * 2. Such an object is never taken for a promise.
 * 3. A member knows its object: taken out of it, it works as it did inside.
 */

import { checkKeys, describe } from "../definition/keys";
import { checkedArgument, invalidArgument } from "../errors";
import type { Stop } from "../native-half";
import type { Messages } from "../queue";
import type { Awaited } from "../queue/circles";
import { sendThrough } from "./send";
import { notActions, unknownAction } from "./unknown";

/** Whom the actions of such an object ask. */
export interface Callee {
  /** Calls an action. It never throws. */
  call(name: string, args: readonly unknown[], signal: Stop | undefined): Promise<unknown>;
  /** The context of an actor that would wait for a queue, and that queue; `undefined` outside of any. */
  waiting(name: string): { party: Messages; awaited: Awaited } | undefined;
}

const CALLEE = Symbol("callee");

interface Called {
  readonly [CALLEE]: Callee;
}

/** A class of such objects. */
export type CalledClass = new (callee: Callee) => object;

/** Whom an object asks; `undefined` for any other value. */
export function calleeOf(value: unknown): Callee | undefined {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, CALLEE)) {
    return undefined;
  }
  return (value as Called)[CALLEE];
}

/** Makes a class called `called` with the actions `names`, and what `add` adds to it. */
export function makeClass(
  called: string,
  names: readonly string[],
  add: (member: (name: string, make: (callee: Callee) => unknown, kept?: boolean) => void) => void,
): CalledClass {
  class Calls implements Called {
    // Not enumerable: it shows nothing of its inside.
    declare readonly [CALLEE]: Callee;

    constructor(callee: Callee) {
      Object.defineProperty(this, CALLEE, { value: callee });
    }
  }
  Object.defineProperty(Calls, "name", { value: called });
  const proto = Calls.prototype;
  addActions(proto, names, "");
  // Members come before actions of their names.
  addMember(proto, "action", (callee) => (call: unknown) => {
    try {
      const { name, args, signal } = readActionCall(call);
      return callee.call(name, args, signal);
    } catch (error) {
      return Promise.reject(error);
    }
  });
  addMember(
    proto,
    "send",
    (callee) => (name: unknown, body: unknown, options: unknown) =>
      sendThrough(callee, name, body, options),
  );
  add((name, make, kept) => addMember(proto, name, make, kept));
  Object.setPrototypeOf(
    proto,
    unknownMembers((self) => self[CALLEE], ""),
  );
  return Calls;
}

/** Adds actions as methods, and groups as objects of them that are made when they are touched. */
function addActions(proto: object, names: readonly string[], prefix: string): void {
  const groups = new Map<string, string[]>();
  for (const name of names) {
    const rest = name.slice(prefix.length);
    const dot = rest.indexOf(".");
    if (dot === -1) {
      addMember(
        proto,
        rest,
        (callee) =>
          (...args: unknown[]) =>
            callee.call(name, args, undefined),
      );
    } else {
      const group = rest.slice(0, dot);
      groups.set(group, [...(groups.get(group) ?? []), name]);
    }
  }
  for (const [group, members] of groups) {
    const path = `${prefix}${group}.`;
    const groupProto: object = Object.create(unknownMembers((self) => self[CALLEE], path));
    addActions(groupProto, members, path);
    addMember(proto, group, (callee) => Object.create(groupProto, { [CALLEE]: { value: callee } }));
  }
}

/** Adds a member that is made when an object is first asked for it (3), or each time. */
function addMember(
  proto: object,
  name: string,
  make: (callee: Callee) => unknown,
  kept = true,
): void {
  const keep = (self: object, value: unknown): void => {
    Object.defineProperty(self, name, { value, writable: true, configurable: true });
  };
  Object.defineProperty(proto, name, {
    configurable: true,
    get(this: Partial<Called>) {
      const callee = this[CALLEE];
      if (callee === undefined) return undefined;
      const made = make(callee);
      // Kept on the object: the next access is a property.
      if (kept) keep(this, made);
      return made;
    },
    set(this: object, value: unknown) {
      keep(this, value);
    },
  });
}

/** The end of a prototype chain at which every name is an action that may or may not exist. */
function unknownMembers(callee: (self: Called) => Callee, prefix: string): object {
  return new Proxy(Object.prototype, {
    get(target, key, receiver) {
      if (typeof key === "symbol" || notActions.has(key)) return Reflect.get(target, key, receiver);
      const self = receiver as Called;
      if (!Object.hasOwn(self, CALLEE)) return undefined;
      const asked = callee(self);
      return unknownAction(prefix + key, (name, args) => asked.call(name, args, undefined));
    },
    has: (target, key) => Reflect.has(target, key),
    getPrototypeOf: () => null,
  });
}

const actionKeys = {
  place: "action()",
  known: ["name", "args", "signal"],
  later: ["skipReadyWait"],
};

function readActionCall(call: unknown): {
  name: string;
  args: readonly unknown[];
  signal: AbortSignal | undefined;
} {
  if (typeof call !== "object" || call === null) {
    throw invalidArgument(`action() takes {name, args}, not ${describe(call)}`);
  }
  checkedArgument(() => checkKeys(call, actionKeys));
  const { name, args = [], signal } = call as Record<string, unknown>;
  if (typeof name !== "string") {
    throw invalidArgument(`name of action() is ${describe(name)}, not a string`);
  }
  if (!Array.isArray(args)) {
    throw invalidArgument(`args of action() is ${describe(args)}, not a list`);
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw invalidArgument(`signal of action() is ${describe(signal)}, not an AbortSignal`);
  }
  return { name, args, signal };
}
