/** Actions that may or may not exist: the actor knows best. Also loaded by browsers. */

/** Names that runtimes and tools look for in any object: promises, JSON, matchers, components. */
export const notActions: ReadonlySet<string> = new Set([
  ...Object.getOwnPropertyNames(Object.prototype),
  "then",
  "toJSON",
  "$$typeof",
  "asymmetricMatch",
  "nodeType",
  "tagName",
  "inspect",
]);

/** A function that calls `name`, whose members call what is inside the group `name`. */
export function unknownAction(
  name: string,
  call: (name: string, args: readonly unknown[]) => Promise<unknown>,
): object {
  return new Proxy((...args: unknown[]) => call(name, args), {
    get(target, key, receiver) {
      if (typeof key === "symbol" || notActions.has(key) || key in Function.prototype) {
        return Reflect.get(target, key, receiver);
      }
      return unknownAction(`${name}.${key}`, call);
    },
  });
}
