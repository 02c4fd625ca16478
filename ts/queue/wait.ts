/** Waits of a queue: what ends them early. */

import { CancellationToken } from "../native-half";
import { plainly } from "./options";

/** Runs `wait` with a token that is cancelled when one of the signals fires; without signals with none. */
export async function withToken<T>(
  signals: readonly (AbortSignal | undefined)[],
  wait: (token: CancellationToken | undefined) => Promise<T>,
): Promise<T> {
  const given = signals.filter((signal) => signal !== undefined);
  if (given.length === 0) return plainly(wait(undefined));
  const token = new CancellationToken();
  const cancel = (): void => void token.cancel();
  for (const signal of given) {
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
  }
  try {
    return await plainly(wait(token));
  } finally {
    for (const signal of given) signal.removeEventListener("abort", cancel);
  }
}
