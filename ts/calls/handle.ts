/**
 * Handles: objects whose methods are an actor's actions.
 *
 * 1. One class for each definition, with real methods, so that a call costs a property and a
 *    function. What is no action is answered by the actor, which knows best (`action_not_found`).
 * 2. A handle is never taken for a promise.
 */

import type { Definition } from "../definition";
import { describe } from "../definition/keys";
import type { Reach } from "./reach";

const REACH = Symbol("reach");

interface HandleObject {
  readonly [REACH]: Reach;
}

type Method = (this: HandleObject, ...args: unknown[]) => Promise<unknown>;
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

    action(call: unknown): Promise<unknown> {
      try {
        const { name, args, signal } = readActionCall(call);
        return this[REACH].call(name, args, signal);
      } catch (error) {
        return Promise.reject(error);
      }
    }

    async resolve(): Promise<string> {
      return (await this[REACH].resolve()).id;
    }
  }
  addActions(ActorHandle.prototype, names, "");
  Object.setPrototypeOf(
    ActorHandle.prototype,
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
      const method: Method = function (...args) {
        return this[REACH].call(name, args, undefined);
      };
      Object.defineProperty(proto, rest, { value: method, writable: true, configurable: true });
    } else {
      const group = rest.slice(0, dot);
      groups.set(group, [...(groups.get(group) ?? []), name]);
    }
  }
  for (const [group, members] of groups) {
    const path = `${prefix}${group}.`;
    const groupProto: object = Object.create(unknownMembers((self) => self[REACH], path));
    addActions(groupProto, members, path);
    Object.defineProperty(proto, group, {
      configurable: true,
      get(this: HandleObject) {
        const made: object = Object.create(groupProto, { [REACH]: { value: this[REACH] } });
        // Kept on the handle: the next access is a property.
        Object.defineProperty(this, group, { value: made });
        return made;
      },
    });
  }
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

function readActionCall(call: unknown): {
  name: string;
  args: readonly unknown[];
  signal: AbortSignal | undefined;
} {
  if (typeof call !== "object" || call === null) {
    throw new TypeError(`action() takes {name, args}, not ${describe(call)}`);
  }
  const { name, args = [], signal } = call as Record<string, unknown>;
  if (typeof name !== "string") {
    throw new TypeError(`name of action() is ${describe(name)}, not a string`);
  }
  if (!Array.isArray(args)) {
    throw new TypeError(`args of action() is ${describe(args)}, not a list`);
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`signal of action() is ${describe(signal)}, not an AbortSignal`);
  }
  return { name, args, signal };
}
