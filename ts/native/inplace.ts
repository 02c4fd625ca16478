/**
 * A call whose caller is in the environment of its actor, so that arguments and
 * result stay here: admitted at once and begun one microtask later through the one
 * queue, or begun when Rust says that its turn has come. Its answer is held until
 * what it may reveal is durable.
 *
 * 1. `finish` happens exactly once, whatever the function does.
 * 2. The caller is answered once: by the function, a timeout, or the end of the
 *    generation, whichever comes first.
 * 3. A call that nobody waits for when it could begin does not begin.
 * 4. Who gives a call up answers for it: Rust only says that nobody waits any more,
 *    because of that or because the generation is about to end with an error.
 */
import { setMaxListeners } from "node:events";
import type { ActorBag } from "./bags.js";
import type { Entry } from "./entries.js";
import { fromRecord, type RivetError } from "./errors.js";
import type { Output } from "./gate.js";
import type { KeepAlive } from "./keepalive.js";
import { onAbort, type Stop } from "./listen.js";
import type { OpenCall } from "./open-calls.js";
import { whenSettled } from "./settle.js";

/** What the function of a call is given. */
export interface CallScope {
  /** Fires when nobody waits for the call any more. */
  readonly signal: AbortSignal;
}

export interface CallPort {
  finish(actor: number, call: number): number;
  cancelCall(actor: number, call: number): void;
}

/** `finish`: the generation is over, or the caller was answered before. */
const OVER = -1;
/** `finish`: it took too long. */
const TIMED_OUT = -2;
/** `finish`: Rust says when the answer may leave. */
const ASK = -3;

export class InPlaceCall implements Entry, OpenCall, Output, CallScope {
  readonly weight = 1;
  readonly #native: CallPort;
  readonly #bag: ActorBag;
  readonly #call: number;
  readonly #run: (scope: CallScope) => unknown;
  readonly #resolve: (value: unknown) => void;
  readonly #reject: (error: unknown) => void;
  #answered = false;
  #cancelled = false;
  #ended = false;
  #failed = false;
  #outcome: unknown;
  #abort: AbortController | undefined;
  #unlisten: (() => void) | undefined;
  #keepAlive: KeepAlive | undefined;

  constructor(
    native: CallPort,
    bag: ActorBag,
    call: number,
    run: (scope: CallScope) => unknown,
    resolve: (value: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.#native = native;
    this.#bag = bag;
    this.#call = call;
    this.#run = run;
    this.#resolve = resolve;
    this.#reject = reject;
    bag.open.set(call, this);
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      // As many parts of one call may listen as there are.
      setMaxListeners(0, this.#abort.signal);
      if (this.#answered || this.#cancelled) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  begin(): void {
    if (this.#answered || this.#cancelled) {
      this.#end(true, undefined);
      return;
    }
    let given: unknown;
    try {
      given = this.#run(this);
    } catch (thrown) {
      this.#end(true, thrown);
      return;
    }
    whenSettled(
      given,
      (value) => this.#end(false, value),
      (thrown) => this.#end(true, thrown),
    );
  }

  cancel(timedOut: boolean): void {
    if (timedOut) this.#refuse(timeout(this.#bag));
    else this.#givenUp();
  }

  /** Gives the call up when `signal` fires. */
  listen(signal: Stop): void {
    this.#unlisten = onAbort(signal, () => this.#giveUp(signal.reason));
  }

  /** Has `keepAlive`, which holds the process for this call, released when the caller is answered. */
  releases(keepAlive: KeepAlive): void {
    this.#keepAlive = keepAlive;
  }

  /** The caller gives up, and is answered with `reason`. */
  #giveUp(reason: unknown): void {
    if (!this.#answer()) return;
    this.#reject(reason);
    this.#givenUp();
    if (this.#ended) this.#bag.open.delete(this.#call);
    else this.#native.cancelCall(this.#bag.actor, this.#call);
  }

  stop(error: RivetError): void {
    this.#refuse(error);
  }

  leave(): void {
    if (!this.#answer()) return;
    if (this.#failed) this.#reject(this.#outcome);
    else this.#resolve(this.#outcome);
  }

  fail(error: RivetError): void {
    this.#refuse(error);
  }

  #end(failed: boolean, outcome: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    const bag = this.#bag;
    const commit = this.#native.finish(bag.actor, this.#call);
    // Rust has answered already, and the job that says how is on its way.
    if (commit === OVER && !this.#answered) return;
    bag.open.delete(this.#call);
    if (this.#answered) return;
    this.#failed = failed;
    this.#outcome = outcome;
    if (commit === TIMED_OUT) this.#refuse(timeout(bag));
    else if (commit === ASK) bag.ask(this);
    else if (commit > bag.durable || bag.holdsOutputs) bag.hold(commit, this);
    else if (commit >= 0) this.leave();
  }

  /** See (2): false when it was answered before. */
  #answer(): boolean {
    if (this.#answered) return false;
    this.#answered = true;
    this.#unlisten?.();
    this.#keepAlive?.release();
    return true;
  }

  #givenUp(): void {
    this.#cancelled = true;
    this.#abort?.abort();
  }

  #refuse(error: RivetError): void {
    if (!this.#answer()) return;
    if (this.#ended) this.#bag.open.delete(this.#call);
    this.#reject(error);
    this.#abort?.abort();
  }
}

function timeout(bag: ActorBag): RivetError {
  return fromRecord({
    group: "actor",
    code: "action_timed_out",
    message: "Action timed out",
    public: true,
    statusCode: 408,
    actor: bag.specifier,
  });
}
