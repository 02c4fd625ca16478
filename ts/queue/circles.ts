/**
 * Waits for the completion of messages that can never end, because whoever could complete the message
 * waits for the same wait.
 *
 * Who waits for whom is known of contexts in this thread: of those that wait for a completion, and of
 * calls that one actor makes of another one here. A wait is looked at once, when it has lasted for
 * {@link GRACE_MS}: then every context that ever received from that queue's actor and still lives must
 * wait itself, in a chain that leads back to the one that asks. One that receives, or does anything else,
 * may still come to the message. What is not known is not refused: calls into other threads or from
 * clients, consumers that have not received yet, promises that are not awaited.
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
  readonly waits: ReadonlySet<Awaited>;
  /** Its function has ended. */
  readonly isOver: boolean;
}

/** A queue for whose consumers somebody waits. */
export interface Awaited {
  readonly live: Live;
  readonly name: string;
}

/** One step of a chain: who waits, and for which queue. */
interface Step {
  readonly actor: string;
  readonly key: readonly string[];
  readonly queue: string;
}

/** Calls back with the error when a wait of `party` turns out to be in a circle. Returns how to end that. */
export function watchCircle(
  party: Party,
  awaited: Awaited,
  found: (error: RivetError) => void,
): () => void {
  let isOver = false;
  clockwork.later(GRACE_MS, () => {
    if (isOver) return;
    const chain = chainOf(party, awaited);
    if (chain !== undefined) found(circularWait(chain));
  });
  return () => {
    isOver = true;
  };
}

/** The chain of waits that leads from `party` back to itself; `undefined` when there is none. */
function chainOf(party: Party, awaited: Awaited): Step[] | undefined {
  const waiting = ancestorsOf(party);
  const seen = new Set<Awaited>();
  const chain: Step[] = [];
  const isStuck = (queue: Awaited): boolean => {
    // One that is being looked at leads back to it.
    if (seen.has(queue)) return true;
    seen.add(queue);
    chain.push(stepOf(queue));
    const consumers = [...(queue.live.consumers ?? [])].filter((consumer) => !consumer.isOver);
    if (consumers.length === 0) return false;
    return consumers.every(
      (consumer) =>
        consumer.parked === 0 &&
        (waiting.has(consumer) || [...consumer.waits].some((other) => isStuck(other))),
    );
  };
  return isStuck(awaited) ? chain : undefined;
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

function stepOf({ live, name }: Awaited): Step {
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
