/**
 * `c.clock`: the runtime's clock, in the hands of an author.
 *
 * 1. `sleep` never throws synchronously.
 * 2. Where the actor begins to stop, or nobody waits for the call any more, a sleep rejects: it must
 *    keep neither an actor from stopping nor a function going that works for nobody. The hooks of the
 *    end are the exception: they run when the actor has begun to stop.
 */

import type { Call } from "../calls/call";
import { withoutStack } from "../codec/parts";
import { checkKeys, describe } from "../definition/keys";
import { checkedArgument, invalidArgument, RivetError } from "../errors";
import { type Bag, clockNow, clockSleep, type SleepStop } from "../native-half";
import type { SleepOptions } from "../types";
import type { Live } from "./live";

export class Clock {
  readonly #live: Live;
  readonly #bag: Bag;
  readonly #call: Call | undefined;
  readonly #ending: boolean;

  /** `ending`: for a hook of the actor's end. */
  constructor(live: Live, call: Call | undefined, ending = false) {
    this.#live = live;
    this.#bag = live.bag;
    this.#call = call;
    this.#ending = ending;
  }

  now(): number {
    return clockNow(this.#bag);
  }

  async sleep(ms: number, options: SleepOptions = {}): Promise<void> {
    if (typeof ms !== "number" || Number.isNaN(ms)) {
      throw invalidArgument(`clock.sleep() takes milliseconds, not ${describe(ms)}`);
    }
    const signal = readSignal(options);
    signal?.throwIfAborted();
    await this.#live.waits(clockSleep(this.#bag, ms, this.#stops(signal)), this.#call);
  }

  /** What ends a sleep early. */
  #stops(given: AbortSignal | undefined): SleepStop[] {
    const stops: SleepStop[] = [];
    if (given !== undefined) stops.push({ signal: given, reason: () => given.reason });
    if (this.#ending) return stops;
    const { abortSignal } = this.#bag;
    stops.push({ signal: abortSignal, reason: () => aborted(this.#bag) });
    // That of the actor as well: a call's own lets go of it when its function ends.
    const own = this.#call?.signal;
    if (own !== undefined) stops.push({ signal: own, reason: () => aborted(this.#bag) });
    return stops;
  }
}

function readSignal(options: SleepOptions): AbortSignal | undefined {
  checkedArgument(() =>
    checkKeys(options, { place: "options of clock.sleep()", known: ["signal"] }),
  );
  const { signal } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw invalidArgument(`signal of clock.sleep() is ${describe(signal)}, not an AbortSignal`);
  }
  return signal;
}

/** `actor.aborted`. */
function aborted(bag: Bag): RivetError {
  const actor = bag.specifier;
  const stops = bag.abortReason !== undefined || bag.stopped !== undefined;
  const message = stops
    ? "the sleep was ended: the actor stops"
    : "the sleep was ended: nobody waits for the call any more";
  return withoutStack(
    () => new RivetError("actor", "aborted", message, { public: true, statusCode: 400, actor }),
  );
}
