/**
 * Who listens to a `CancellationToken`: kept here, since Rust holds no function.
 */
import { CancellationToken } from "../../index.js";

type Listener = (error: null) => void;

const listeners = new WeakMap<CancellationToken, Listener[]>();

declare module "../../index.js" {
  interface CancellationToken {
    /** Calls `listener` once when the token is cancelled, or soon if it is. */
    onCancelled(listener: (error: null) => void): void;
  }
}

const cancelNative = CancellationToken.prototype.cancel;

CancellationToken.prototype.onCancelled = function onCancelled(
  this: CancellationToken,
  listener: Listener,
): void {
  if (typeof listener !== "function") throw new TypeError("onCancelled takes a function");
  if (this.aborted()) {
    queueMicrotask(() => listener(null));
    return;
  }
  const waiting = listeners.get(this);
  if (waiting === undefined) listeners.set(this, [listener]);
  else waiting.push(listener);
};

CancellationToken.prototype.cancel = function cancel(this: CancellationToken): boolean {
  const first = cancelNative.call(this);
  const waiting = listeners.get(this);
  if (waiting === undefined) return first;
  listeners.delete(this);
  for (const listener of waiting) queueMicrotask(() => listener(null));
  return first;
};

export function newToken(): CancellationToken {
  return new CancellationToken();
}

export { CancellationToken };
