/**
 * The runtime's clock: the time where an actor runs, and sleeps on it.
 *
 * 1. A sleep ends once: when it is due, when one of its stops fires, or with the generation.
 * 2. A sleep does not hold the process: what waits for it does, or does not.
 * 3. One that is due when it begins, or that may not begin, ends after the loop has turned: whoever sleeps
 *    again and again must not starve it.
 * 4. Whoever ignores that sleeps may not begin any more is slowed down, step by step to once a second: a
 *    loop that catches everything would else burn the thread for as long as the process lives.
 */
import * as native from "../../index.js";
import type { ActorBag } from "./bags.js";
import { later, setImmediate } from "./clockwork.js";
import { withoutStack } from "./errors.js";
import { onAbort } from "./listen.js";

/** What ends a sleep before it is due. */
export interface SleepStop {
  readonly signal: AbortSignal;
  /** What the sleep is rejected with when the signal fires. */
  reason(): unknown;
}

/** The time where the actor runs, in milliseconds since the epoch. */
export function clockNow(bag: ActorBag): number {
  return native.clockNow(bag.actor);
}

/**
 * Resolves after `ms` milliseconds on the clock of the place where the actor runs.
 *
 * @param ms any number but NaN; 0 and less are due at once, Infinity never.
 * @throws rejects with the reason of the stop that fired, and with `actor.aborted` once the generation
 * is over.
 */
export async function clockSleep(
  bag: ActorBag,
  ms: number,
  stops: readonly SleepStop[],
): Promise<void> {
  const { tickets } = bag.home;
  const fired = stops.find(({ signal }) => signal.aborted);
  const unlisten: (() => void)[] = [];
  const start = (ticket: number): void => {
    const sleep = fired === undefined ? native.beginSleep(bag.actor, ms, ticket) : 0;
    if (sleep === 0) {
      const refuse = () => tickets.abandon(ticket, fired?.reason() ?? over(bag));
      refuseSoon(fired?.signal ?? bag.abortSignal, refuse);
      return;
    }
    for (const { signal, reason } of stops) {
      const end = (): void => {
        if (tickets.abandon(ticket, reason())) native.endSleep(bag.actor, sleep);
      };
      unlisten.push(onAbort(signal, end));
    }
  };
  try {
    await tickets.wait(start, { holds: false });
  } finally {
    for (const stop of unlisten) stop();
  }
  if (ms <= 0) await new Promise<void>((turned) => setImmediate(turned));
}

/** How many sleeps were refused because of a signal. */
const refused = new WeakMap<AbortSignal, number>();

/** From this many on refusals are slowed down. */
const PATIENCE = 8;

/** How slow they become, in milliseconds. */
const SLOWEST_MS = 1_000;

/** See (3) and (4). */
function refuseSoon(signal: AbortSignal, refuse: () => void): void {
  const before = refused.get(signal) ?? 0;
  refused.set(signal, before + 1);
  if (before < PATIENCE) setImmediate(refuse);
  else later(Math.min(2 ** (before - PATIENCE), SLOWEST_MS), refuse);
}

function over(bag: ActorBag): Error {
  return withoutStack({
    group: "actor",
    code: "aborted",
    message: "the actor stops",
    public: true,
    statusCode: 400,
    actor: bag.specifier,
  });
}
