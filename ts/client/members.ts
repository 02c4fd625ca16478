/** Objects whose other members are an actor's actions: whatever their names, the actor knows best. */

/** Calls an action by its name, groups joined by dots. */
export type CallAction = (name: string, args: readonly unknown[]) => Promise<unknown>;

/** Names that runtimes and tools look for in any object: promises, JSON, matchers, components. */
const NO_ACTIONS = new Set([
  ...Object.getOwnPropertyNames(Object.prototype),
  "then",
  "toJSON",
  "$$typeof",
  "asymmetricMatch",
  "nodeType",
  "tagName",
  "inspect",
]);

/** `members` with all actions beside them. A member hides the action of its name. */
export function withActions<T extends object>(members: T, call: CallAction): T {
  const actions = new Map<string, object>();
  const others = new Proxy(Object.prototype, {
    get(target, key, receiver) {
      if (typeof key === "symbol" || NO_ACTIONS.has(key)) return Reflect.get(target, key, receiver);
      const action = actions.get(key) ?? actionNamed(key, call);
      actions.set(key, action);
      return action;
    },
    has: (target, key) => Reflect.has(target, key),
    getPrototypeOf: () => null,
  });
  return Object.setPrototypeOf(members, others);
}

/** A function that calls `name`, whose members call what is inside the group `name`. */
function actionNamed(name: string, call: CallAction): object {
  return new Proxy((...args: unknown[]) => call(name, args), {
    get(target, key, receiver) {
      if (typeof key === "symbol" || NO_ACTIONS.has(key) || key in Function.prototype) {
        return Reflect.get(target, key, receiver);
      }
      return actionNamed(`${name}.${key}`, call);
    },
  });
}
