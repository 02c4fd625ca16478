/**
 * The runtime's clock: the time where an actor runs, and sleeps on it.
 *
 * 1. A sleep ends once: when it is due, when one of its stops fires, or with the generation.
 * 2. A sleep does not hold the process: what waits for it does, or does not.
 * 3. One that is due when it begins, or whose actor has stopped already, ends after the loop has turned:
 *    whoever sleeps again and again must not starve it.
 */
import * as native from "../../index.js";
import type { ActorBag } from "./bags.js";
import { setImmediate } from "./clockwork.js";
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
      setImmediate(() => tickets.abandon(ticket, fired?.reason() ?? over(bag)));
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
