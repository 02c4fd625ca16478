/** Handles: objects whose methods are an actor's actions. */

import type { Definition } from "../definition";
import { plannedMembers } from "../definition/names";
import { invalidArgument } from "../errors";
import { makeConnection } from "./connection";
import { type CalledClass, calleeOf, makeClass } from "./members";
import { Reach } from "./reach";

const classes = new WeakMap<Definition, CalledClass>();
let unknownClass: CalledClass | undefined;

/** Makes a handle on what `reach` reaches. */
export function makeHandle(reach: Reach, definition: Definition | undefined): object {
  return new (classOf(definition))(reach);
}

/** What a handle reaches; `undefined` for anything that is no handle. */
export function reachOf(handle: unknown): Reach | undefined {
  const callee = calleeOf(handle);
  return callee instanceof Reach ? callee : undefined;
}

function classOf(definition: Definition | undefined): CalledClass {
  if (definition === undefined) {
    unknownClass ??= makeHandleClass([], undefined);
    return unknownClass;
  }
  let made = classes.get(definition);
  if (made === undefined) {
    made = makeHandleClass([...definition.actions.keys()], definition);
    classes.set(definition, made);
  }
  return made;
}

function makeHandleClass(
  names: readonly string[],
  definition: Definition | undefined,
): CalledClass {
  return makeClass("ActorHandle", names, (member) => {
    const add = (name: string, make: (reach: Reach) => unknown): void => {
      member(name, (callee) => make(callee as Reach));
    };
    add("resolve", (reach) => async () => (await reach.resolve()).id);
    add(
      "connect",
      (reach) =>
        (...given: unknown[]) =>
          makeConnection(reach, definition, given),
    );
    for (const name of plannedMembers) {
      add(name, () => () => {
        return Promise.reject(invalidArgument(`${name}() of a handle is not available yet`));
      });
    }
  });
}
