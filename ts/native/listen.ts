/**
 * Hearing of a caller's signals. One listener per signal, however many calls are given it: each of its
 * own would look like a leak to Node.js, and the limit of a signal is its owner's to set.
 */

/**
 * Two signals as one. `AbortSignal.any` keeps something of every call for as long as one of its sources
 * lives, and the signal of a handle may live as long as the process.
 */
export class EitherSignal {
  readonly first: Stop;
  readonly second: Stop;

  constructor(first: Stop, second: Stop) {
    this.first = first;
    this.second = second;
  }

  get aborted(): boolean {
    return this.first.aborted || this.second.aborted;
  }

  get reason(): unknown {
    return this.first.aborted ? this.first.reason : this.second.reason;
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }
}

/** What a caller gives a call up with. */
export type Stop = AbortSignal | EitherSignal;

const heard = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Has `told` called when `signal` fires.
 *
 * @returns stops listening.
 */
export function onAbort(signal: Stop, told: () => void): () => void {
  // By its shape: it may be of another copy of this module.
  if ("second" in signal) {
    const stops = [onAbort(signal.first, told), onAbort(signal.second, told)];
    return () => {
      for (const stop of stops) stop();
    };
  }
  let waiting = heard.get(signal);
  if (waiting === undefined) {
    const all = new Set<() => void>();
    const fire = () => {
      heard.delete(signal);
      for (const each of all) each();
    };
    heard.set(signal, all);
    stops.set(all, () => signal.removeEventListener("abort", fire));
    signal.addEventListener("abort", fire, { once: true });
    waiting = all;
  }
  const all = waiting;
  // One and the same function may be given twice.
  const own = () => told();
  all.add(own);
  return () => {
    if (!all.delete(own) || all.size > 0 || heard.get(signal) !== all) return;
    heard.delete(signal);
    stops.get(all)?.();
  };
}

/** How the one listener of a signal is taken off. */
const stops = new WeakMap<Set<() => void>, () => void>();
