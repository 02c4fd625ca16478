/**
 * Shutting down on a signal.
 *
 * 1. The signal takes its course afterwards: the process ends as it would have, with the same code.
 * 2. A second signal does not wait.
 */

/** The signals on which a program is asked to end. */
const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Calls `drain` on the first signal. Returns how to stop listening. */
export function onSignals(drain: () => Promise<unknown>): () => void {
  const stop = (): void => {
    for (const signal of SIGNALS) process.off(signal, heard);
  };
  const heard = (signal: NodeJS.Signals): void => {
    // From here on the default holds again (2).
    stop();
    const end = (): void => {
      process.kill(process.pid, signal);
    };
    drain().then(end, end);
  };
  for (const signal of SIGNALS) process.on(signal, heard);
  return stop;
}
