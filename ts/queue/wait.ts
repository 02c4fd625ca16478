/** Waits of a queue: what ends them early. */

import type { Live } from "../actors/live";
import type { Call } from "../calls/call";
import { CancellationToken, messages, type NativeQueue } from "../native-half";
import { type Party, watchCircle } from "./circles";
import type { SendOptions } from "./options";
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

/** A message that somebody waits for. */
export interface Asked {
  readonly native: NativeQueue;
  /** The actor of the queue. */
  readonly live: Live;
  readonly name: string;
  readonly body: Uint8Array;
  readonly options: SendOptions & { readonly timeoutMs: number };
  readonly signal: AbortSignal | undefined;
  readonly call: Call | undefined;
  /** Who waits, if that is an actor here. */
  readonly party: (Party & { readonly waits: Set<{ live: Live; name: string }> }) | undefined;
}

/** Sends a message and waits for its response; null for one without. */
export async function askAndWait(asked: Asked): Promise<Uint8Array | null> {
  const { native, live, name, body, options, signal, call, party } = asked;
  const given = [signal, call?.signal];
  if (party === undefined) {
    return withToken(given, (token) =>
      messages.sendAndWait(native, name, body, { ...options, token }),
    );
  }
  const circle = new AbortController();
  const awaited = { live, name };
  party.waits.add(awaited);
  const unwatch = watchCircle(party, awaited, (error) => circle.abort(error));
  try {
    return await withToken([...given, circle.signal], (token) =>
      messages.sendAndWait(native, name, body, { ...options, token }),
    );
  } catch (error) {
    throw circle.signal.aborted ? circle.signal.reason : error;
  } finally {
    unwatch();
    party.waits.delete(awaited);
  }
}
