/**
 * Handles: objects whose methods are an actor's actions.
 *
 * 1. One class for each definition, with real members, so that a call costs a property and a
 *    function. What is no action is answered by the actor, which knows best (`action_not_found`).
 * 2. A handle is never taken for a promise.
 * 3. A member knows its handle: taken out of it, it works as it did inside.
 */

import type { Definition } from "../definition";
import { checkKeys, describe } from "../definition/keys";
import { plannedMembers } from "../definition/names";
import { checkedArgument, invalidArgument } from "../errors";
import type { Reach } from "./reach";
import { sendThrough } from "./send";

const REACH = Symbol("reach");

interface HandleObject {
  readonly [REACH]: Reach;
}

type HandleClass = new (reach: Reach) => HandleObject;

const classes = new WeakMap<Definition, HandleClass>();
let unknownClass: HandleClass | undefined;

/** Makes a handle on what `reach` reaches. */
export function makeHandle(reach: Reach, definition: Definition | undefined): object {
  return new (classOf(definition))(reach);
}

/** What a handle reaches; `undefined` for anything that is no handle. */
export function reachOf(handle: unknown): Reach | undefined {
  if (typeof handle !== "object" || handle === null || !Object.hasOwn(handle, REACH)) {
    return undefined;
  }
  return (handle as HandleObject)[REACH];
}

function classOf(definition: Definition | undefined): HandleClass {
  if (definition === undefined) {
    unknownClass ??= makeClass([]);
    return unknownClass;
  }
  let made = classes.get(definition);
  if (made === undefined) {
    made = makeClass([...definition.actions.keys()]);
    classes.set(definition, made);
  }
  return made;
}

function makeClass(names: readonly string[]): HandleClass {
  class ActorHandle implements HandleObject {
    // Not enumerable: a handle shows nothing of its inside.
    declare readonly [REACH]: Reach;

    constructor(reach: Reach) {
      Object.defineProperty(this, REACH, { value: reach });
    }
  }
  const proto = ActorHandle.prototype;
  addMember(proto, "action", (reach) => (call: unknown) => {
    try {
      const { name, args, signal } = readActionCall(call);
      return reach.call(name, args, signal);
    } catch (error) {
      return Promise.reject(error);
    }
  });
  addMember(
    proto,
    "send",
    (reach) => (name: unknown, body: unknown, options: unknown) =>
      sendThrough(reach, name, body, options),
  );
  addMember(proto, "resolve", (reach) => async () => (await reach.resolve()).id);
  for (const name of plannedMembers) {
    addMember(proto, name, () => () => {
      const error = invalidArgument(`${name}() of a handle is not available yet`);
      if (name === "connect") throw error;
      return Promise.reject(error);
    });
  }
  addActions(proto, names, "");
  Object.setPrototypeOf(
    proto,
    unknownMembers((self) => self[REACH], ""),
  );
  return ActorHandle;
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
        (reach) =>
          (...args: unknown[]) =>
            reach.call(name, args, undefined),
      );
    } else {
      const group = rest.slice(0, dot);
      groups.set(group, [...(groups.get(group) ?? []), name]);
    }
  }
  for (const [group, members] of groups) {
    const path = `${prefix}${group}.`;
    const groupProto: object = Object.create(unknownMembers((self) => self[REACH], path));
    addActions(groupProto, members, path);
    addMember(proto, group, (reach) => Object.create(groupProto, { [REACH]: { value: reach } }));
  }
}

/** Adds a member that is made when a handle is first asked for it (3). */
function addMember(proto: object, name: string, make: (reach: Reach) => object): void {
  const keep = (self: object, value: unknown): void => {
    Object.defineProperty(self, name, { value, writable: true, configurable: true });
  };
  Object.defineProperty(proto, name, {
    configurable: true,
    get(this: Partial<HandleObject>) {
      const reach = this[REACH];
      if (reach === undefined) return undefined;
      const made = make(reach);
      // Kept on the handle: the next access is a property.
      keep(this, made);
      return made;
    },
    set(this: object, value: unknown) {
      keep(this, value);
    },
  });
}

/** The end of a prototype chain at which every name is an action that may or may not exist. */
function unknownMembers(reach: (self: HandleObject) => Reach, prefix: string): object {
  return new Proxy(Object.prototype, {
    get(target, key, receiver) {
      if (typeof key === "symbol" || notActions.has(key)) return Reflect.get(target, key, receiver);
      const self = receiver as HandleObject;
      return Object.hasOwn(self, REACH) ? unknownAction(reach(self), prefix + key) : undefined;
    },
    has: (target, key) => Reflect.has(target, key),
    getPrototypeOf: () => null,
  });
}

/** Names that runtimes and tools look for in any object: promises, JSON, matchers, components. */
const notActions = new Set([
  ...Object.getOwnPropertyNames(Object.prototype),
  "then",
  "toJSON",
  "$$typeof",
  "asymmetricMatch",
  "nodeType",
  "tagName",
  "inspect",
]);

/** A function that asks for `name`, whose members ask for what is inside the group `name`. */
function unknownAction(reach: Reach, name: string): object {
  return new Proxy((...args: unknown[]) => reach.call(name, args, undefined), {
    get(target, key, receiver) {
      if (typeof key === "symbol" || notActions.has(key) || key in Function.prototype) {
        return Reflect.get(target, key, receiver);
      }
      return unknownAction(reach, `${name}.${key}`);
    },
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
