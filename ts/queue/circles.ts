/**
 * Waits for the completion of messages that can never end, because whoever could complete the message
 * waits for the same wait.
 *
 * Who waits for whom is known of contexts in this thread: of those that wait for a completion, and of
 * calls in place that one actor makes of another one. A wait is looked at once, when it has lasted for
 * {@link GRACE_MS}: then every context that ever received from that queue's actor and still lives must
 * wait itself, in a chain that leads back to the one that asks. One that receives, or does anything else,
 * may still come to the message. What is not known is not refused: calls that take the ordinary
 * way, actors in other threads, consumers that have not received yet, promises that are not awaited.
 */

import type { Live } from "../actors/live";
import type { Call } from "../calls/call";
import { RivetError } from "../errors";
import { clockwork } from "../native-half";

/** How long a wait may last before it is looked at, in milliseconds. */
const GRACE_MS = 1_000;

/** A context, as one that receives and waits. */
export interface Party {
  readonly live: Live;
  readonly call: Call | undefined;
  /** How many receives of it wait. */
  readonly parked: number;
  /** For whose consumers it waits. */
  readonly waitsFor: ReadonlySet<Awaited>;
  /** Its function has ended. */
  readonly isOver: boolean;
}

/** A queue for whose consumers somebody waits. */
export interface Awaited {
  /** Its actor, where that lives in this thread. */
  readonly live: Live | undefined;
  readonly name: string;
}

/** One step of a chain: who waits, and for which queue. */
interface Step {
  readonly actor: string;
  readonly key: readonly string[];
  readonly queue: string;
}

/**
 * Runs `wait`, for which `party` waits, with a signal that fires when it turns out to be in a circle; it
 * rejects with that then.
 */
export async function unlessCircular<T>(
  party: Party & { readonly waitsFor: Set<Awaited> },
  awaited: Awaited,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const circle = new AbortController();
  party.waitsFor.add(awaited);
  clockwork.later(GRACE_MS, () => {
    const chain = party.waitsFor.has(awaited) ? chainOf(party, awaited) : undefined;
    if (chain !== undefined) circle.abort(circularWait(chain));
  });
  try {
    return await wait(circle.signal);
  } catch (error) {
    throw circle.signal.aborted ? circle.signal.reason : error;
  } finally {
    party.waitsFor.delete(awaited);
  }
}

/** The chain of waits that leads from `party` back to itself; `undefined` when there is none. */
function chainOf(party: Party, awaited: Awaited): Step[] | undefined {
  const waiting = ancestorsOf(party);
  const chain: { readonly live: Live; readonly step: Step }[] = [];
  const isStuck = ({ live, name }: Awaited): boolean => {
    if (live === undefined) return false;
    // One that is being looked at leads back to it.
    if (chain.some((other) => other.live === live && other.step.queue === name)) return true;
    chain.push({ live, step: stepOf(live, name) });
    const consumers = [...(live.consumers ?? [])].filter((consumer) => !consumer.isOver);
    if (consumers.length === 0) return false;
    return consumers.every(
      (consumer) =>
        consumer.parked === 0 &&
        (waiting.has(consumer) || [...consumer.waitsFor].some((other) => isStuck(other))),
    );
  };
  return isStuck(awaited) ? chain.map(({ step }) => step) : undefined;
}

/** A context and all whose call of it waits. */
function ancestorsOf(party: Party): Set<Party> {
  const all = new Set<Party>();
  let next: Party | undefined = party;
  while (next !== undefined && !all.has(next)) {
    all.add(next);
    next = next.call?.from?.queue;
  }
  return all;
}

function stepOf(live: Live, name: string): Step {
  const { identity } = live.bag;
  return { actor: identity.name, key: identity.key.map(String), queue: name };
}

function circularWait(chain: readonly Step[]): RivetError {
  const shown = chain.map(({ actor, key, queue }) => `${actor}[${key.join("/")}].${queue}`);
  return new RivetError(
    "queue",
    "circular_wait",
    `nobody can complete the message: its consumers wait for each other through ${shown.join(", ")}`,
    { public: true, statusCode: 409, metadata: { chain } },
  );
}
