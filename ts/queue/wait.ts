/** Waits of a queue: what ends them early. */

import { CancellationToken, onAbort } from "../native-half";
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
  if (given.some((signal) => signal.aborted)) cancel();
  const stops = given.map((signal) => onAbort(signal, cancel));
  try {
    return await plainly(wait(token));
  } finally {
    for (const stop of stops) stop();
  }
}
