/**
 * One call of an action, from the side of the actor that runs it.
 *
 * 1. It has two ends that are independent: it is *answered* once (result, error, timeout,
 *    cancellation), and *released* when its function really ended.
 * 2. Its answer is not made before its statements have ended, awaited or not, where answers wait.
 * 3. Its signal is made when it is first looked at, and lets go of the actor's when it is released.
 */

import type { Context } from "../actors/context";
import type { Live } from "../actors/live";
import type { Conn } from "../connections/conn";
import { OpenStatements } from "../native-half";
import type { Caller, ScheduledFireInfo } from "../types";

/** The deepest chain of calls that runs in place; beyond it calls take the ordinary way. */
export const MAX_DEPTH = 32;

/** Where a call hears that nobody waits for it any more. */
export interface Scope {
  readonly signal: AbortSignal;
  /** Why it runs, if a schedule calls. */
  readonly fire?: ScheduledFireInfo | undefined;
}

export class Call {
  /** Who called. */
  readonly caller: Caller;
  /** The actor that runs it. */
  readonly live: Live;
  /** The call inside which it was made. */
  readonly parent: Call | undefined;
  /** The context of an actor of this environment that made it. */
  readonly from: Context | undefined;
  /** The connection over which it came, if over one. */
  conn: Conn | undefined;
  /** How many calls wait for each other, this one included. */
  readonly depth: number;
  /** The request that it answers, if it is one for `onRequest`. Set before the author's function runs. */
  request: Request | undefined;
  readonly #scope: Scope | undefined;
  #controller: AbortController | undefined;
  #statements: OpenStatements | undefined;
  #released = false;

  constructor(
    live: Live,
    caller: Caller,
    parent: Call | undefined,
    scope: Scope | undefined,
    from?: Context,
  ) {
    this.live = live;
    this.caller = caller;
    this.parent = parent;
    this.depth = parent === undefined ? 1 : parent.depth + 1;
    this.#scope = scope;
    this.from = from;
    this.conn = undefined;
  }

  /** Why it runs, if a schedule called. */
  get fire(): ScheduledFireInfo | undefined {
    return this.#scope?.fire;
  }

  /** Fires when nobody waits for the answer any more, and when the actor begins to stop. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      for (const source of this.#sources()) {
        if (source.aborted) this.#controller.abort(source.reason);
        else if (!this.#released) source.addEventListener("abort", this.#fired, { once: true });
      }
    }
    return this.#controller.signal;
  }

  /** The statements that it has asked for and that have not ended. */
  get statements(): OpenStatements {
    this.#statements ??= new OpenStatements();
    return this.#statements;
  }

  /** Resolves when those have ended that it has asked for so far; undefined for none. */
  statementsEnded(): Promise<unknown> | undefined {
    return this.#statements?.ended();
  }

  /** Resolves when its answer may be made; undefined for at once. */
  endStatements(): Promise<void> | undefined {
    return this.#statements?.close();
  }

  /** Whether its function ended. */
  get isReleased(): boolean {
    return this.#released;
  }

  /** The function ended. */
  release(): void {
    if (this.#controller !== undefined) {
      for (const source of this.#sources()) source.removeEventListener("abort", this.#fired);
    }
    this.#released = true;
  }

  #sources(): AbortSignal[] {
    const stopping = this.live.bag.abortSignal;
    // Once its function ended a call is over for the native half, which is no cancellation.
    if (this.#scope === undefined || this.#released) return [stopping];
    return [stopping, this.#scope.signal];
  }

  readonly #fired = (): void => {
    const source = this.#sources().find((signal) => signal.aborted);
    this.#controller?.abort(source?.reason);
  };
}
