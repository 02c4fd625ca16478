/**
 * What this environment waits for from Rust, by ticket.
 *
 * A ticket is settled once. What was thrown by an action of this environment is
 * kept for the caller, if that is here too: it becomes the `cause` of its error.
 */
import { type ErrorRecord, fromRecord, readRecord, toBridge } from "./errors.js";
import { StartFailures } from "./failures.js";
import type { KeepAlive } from "./keepalive.js";

interface Waiting {
  resolve(bytes: Uint8Array | null): void;
  reject(error: unknown): void;
  bridged: boolean;
  holds: boolean;
  thrown: { thrown: unknown } | undefined;
  /** Called when whoever waits was told. */
  told: (() => void) | undefined;
}

export interface WaitOptions {
  /** Whether the process stays alive for it. Default true. */
  holds?: boolean;
  /** Whether the error is in the form that the contract's callers read. Default false. */
  bridged?: boolean;
}

export class Tickets {
  /** What starts failed with that somebody may wait for. */
  readonly failures = new StartFailures();
  /** How many others wait for something that may have failed. Changed by sessions. */
  others = 0;
  #last = 0;
  readonly #waiting = new Map<number, Waiting>();
  readonly #keepAlive: KeepAlive;

  constructor(keepAlive: KeepAlive) {
    this.#keepAlive = keepAlive;
  }

  /** How many are not settled. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Begins something under a new ticket; `start` throws where it cannot begin. */
  wait(start: (ticket: number) => void, options: WaitOptions = {}): Promise<Uint8Array | null> {
    const { holds = true, bridged = false } = options;
    return new Promise((resolve, reject) => {
      this.#last += 1;
      const ticket = this.#last;
      const waiting = { resolve, reject, bridged, holds, thrown: undefined, told: undefined };
      this.#waiting.set(ticket, waiting);
      if (holds) this.#keepAlive.hold();
      try {
        start(ticket);
      } catch (refused) {
        this.#take(ticket);
        throw refused;
      }
    });
  }

  /** The outcome has come. False when nobody waits for it any more. */
  settle(ticket: number, bytes: Uint8Array | null, error: string | undefined): boolean {
    const waiting = this.#take(ticket);
    if (waiting === undefined) return false;
    if (error === undefined) waiting.resolve(bytes);
    else this.#fail(waiting, readRecord(error));
    waiting.told?.();
    this.#rest();
    return true;
  }

  /** Whoever waits gave up. */
  abandon(ticket: number, reason: unknown): boolean {
    const waiting = this.#take(ticket);
    waiting?.reject(reason);
    waiting?.told?.();
    this.#rest();
    return waiting !== undefined;
  }

  /** An action that this environment submitted threw this. */
  threw(ticket: number, thrown: unknown): void {
    const waiting = this.#waiting.get(ticket);
    if (waiting !== undefined) waiting.thrown = { thrown };
  }

  /** Has `told` called once whoever waits for a ticket was told. False when nobody waits. */
  whenSettled(ticket: number, told: () => void): boolean {
    const waiting = this.#waiting.get(ticket);
    if (waiting === undefined) return false;
    waiting.told = told;
    return true;
  }

  #take(ticket: number): Waiting | undefined {
    const waiting = this.#waiting.get(ticket);
    if (waiting === undefined) return undefined;
    this.#waiting.delete(ticket);
    if (waiting.holds) this.#keepAlive.release();
    return waiting;
  }

  #fail(waiting: Waiting, record: ErrorRecord): void {
    const cause = waiting.thrown ?? this.failures.causeOf(record);
    waiting.reject(waiting.bridged ? toBridge(record) : fromRecord(record, cause));
  }

  #rest(): void {
    if (this.#waiting.size === 0 && this.others === 0) this.failures.clear();
  }
}
