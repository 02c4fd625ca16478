/** What the three walks over values (copy, encode, check) share beside {@link classify}. */

import { inspect } from "./inspect";

/** Thrown inside a walk that met a refused value; the slow walk then names it and its path. */
export const REFUSED: unique symbol = Symbol("refused");

/** The error for a value that a walk refused. `root` names the value itself, such as `args`. */
export function refusal(value: unknown, root: string): TypeError {
  const found = inspect(value, root);
  // A getter or a proxy of the author's may answer differently the second time.
  if (found === undefined) return new TypeError(`Value at ${root} changed while it was read`);
  return new TypeError(`Value at ${found.path} ${found.reason}`);
}

/** The fields of an error that survive, in the order in which they are kept. */
export function errorFields(error: Error): [string, unknown][] {
  const fields: [string, unknown][] = [];
  const seen = new Set<string>();
  for (const key of ["name", "message", "stack", "cause", "errors"]) {
    seen.add(key);
    const value = (error as unknown as Record<string, unknown>)[key];
    // Classes keep the name on their prototype, DOMException the message too.
    const inherited = key === "name" || (key === "message" && value !== "");
    if (inherited ? value !== undefined : Object.hasOwn(error, key)) fields.push([key, value]);
  }
  for (const key of Object.keys(error)) {
    const value = (error as unknown as Record<string, unknown>)[key];
    // Methods of an error are its class's business, and its class is lost on the way.
    if (!seen.has(key) && typeof value !== "function" && typeof value !== "symbol") {
      fields.push([key, value]);
    }
  }
  // DOMException and its like keep `code` on the prototype.
  const code = (error as { code?: unknown }).code;
  if (code !== undefined && !Object.hasOwn(error, "code") && typeof code !== "function") {
    fields.push(["code", code]);
  }
  return fields;
}

const errorClasses: Record<string, new (message?: string) => Error> = {
  Error,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
};

/** Makes the error whose fields are given. */
export function makeError(fields: readonly [string, unknown][]): Error {
  const name = fields.find(([key]) => key === "name")?.[1];
  const known = typeof name === "string" && Object.hasOwn(errorClasses, name);
  const Class = known ? errorClasses[name] : Error;
  const error = withoutStack(() => new (Class ?? Error)());
  let hasStack = false;
  for (const [key, value] of fields) {
    if (key === "name" && (known || value === "Error")) continue;
    if (key === "stack") hasStack = true;
    const enumerable = !["name", "message", "stack", "cause", "errors"].includes(key);
    Object.defineProperty(error, key, { value, enumerable, writable: true, configurable: true });
  }
  if (!hasStack) delete (error as { stack?: string }).stack;
  return error;
}

/** Makes an error without the cost and the misleading frames of a stack. */
export function withoutStack<T>(make: () => T): T {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

/** Sets `key` as an own property, `__proto__` too. */
export function setOwn(target: object, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  } else {
    (target as Record<string, unknown>)[key] = value;
  }
}
