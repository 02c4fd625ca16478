/**
 * Hearing of a caller's signal. One listener per signal, however many calls are given it: each of its
 * own would look like a leak to Node.js, and the limit of a signal is its owner's to set.
 */

const heard = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Has `told` called when `signal` fires.
 *
 * @returns stops listening.
 */
export function onAbort(signal: AbortSignal, told: () => void): () => void {
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
