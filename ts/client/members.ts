/** Objects whose other members are an actor's actions: whatever their names, the actor knows best. */

import { notActions, unknownAction } from "../calls/unknown";

/** Calls an action by its name, groups joined by dots. */
export type CallAction = (name: string, args: readonly unknown[]) => Promise<unknown>;

/** `members` with all actions beside them. A member hides the action of its name. */
export function withActions<T extends object>(members: T, call: CallAction): T {
  const actions = new Map<string, object>();
  const others = new Proxy(Object.prototype, {
    get(target, key, receiver) {
      if (typeof key === "symbol" || notActions.has(key)) return Reflect.get(target, key, receiver);
      const action = actions.get(key) ?? unknownAction(key, call);
      actions.set(key, action);
      return action;
    },
    has: (target, key) => Reflect.has(target, key),
    getPrototypeOf: () => null,
  });
  return Object.setPrototypeOf(members, others);
}
