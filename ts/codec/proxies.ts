/**
 * Which objects are proxies of an actor's state.
 *
 * The codec sees through them: a proxy is encoded, copied and checked as the object behind it,
 * without running a trap for each property.
 */

const behind = new WeakMap<object, object>();

/** Notes that `proxy` stands for `raw`. */
export function noteProxy(proxy: object, raw: object): void {
  behind.set(proxy, raw);
}

/** The object behind a proxy of state; any other object itself. */
export function unwrap<T extends object>(value: T): T {
  return (behind.get(value) as T | undefined) ?? value;
}

/** Whether `value` is a proxy of state. */
export function isProxy(value: object): boolean {
  return behind.has(value);
}
