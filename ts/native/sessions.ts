/**
 * Sessions: clients of actors that this environment holds.
 *
 * 1. What a session hears comes in the order in which it was told, and before the answer of a call that
 *    was made after it: it is heard within the drain, answers settle promises.
 * 2. An open session does not hold the process; what is asked of it does.
 */
import * as native from "../../index.js";
import type { ErrorActor, RivetError } from "./errors.js";
import { fromRecord, readRecord } from "./errors.js";
import type { CallerKind } from "./hooks.js";
import type { Records } from "./jobs.js";
import type { KeepAlive } from "./keepalive.js";
import { onAbort, type Stop } from "./listen.js";
import type { Tickets } from "./tickets.js";

/** Who hears of a session. Nothing comes after `refused` and `closed`. */
export interface SessionListener {
  accepted(connId: string, actor: ErrorActor): void;
  event(name: string, args: Uint8Array): void;
  /** It was never accepted. */
  refused(error: RivetError): void;
  /** It was closed by the actor or the host. */
  closed(code: number, reason: string): void;
}

/** The numbers of what a session hears, as the Rust side has them. */
const Heard = { ACCEPTED: 0, EVENT: 1, CLOSED: 2, REFUSED: 3 } as const;

/** Those of one environment. */
export class Sessions {
  readonly environment: number;
  readonly tickets: Tickets;
  readonly #keepAlive: KeepAlive;
  readonly #open = new Map<number, SessionHandle>();

  constructor(environment: number, tickets: Tickets, keepAlive: KeepAlive) {
    this.environment = environment;
    this.tickets = tickets;
    this.#keepAlive = keepAlive;
  }

  /** Keeps a session that was opened; the process stays alive until it is accepted or refused. */
  opened(host: number, number: number, listener: SessionListener): SessionHandle {
    this.#keepAlive.hold();
    this.tickets.others += 1;
    const decided = () => {
      this.tickets.others -= 1;
      this.#keepAlive.release();
    };
    const ended = () => this.#open.delete(number);
    const session = new SessionHandle(this, host, number, listener, decided, ended);
    this.#open.set(number, session);
    return session;
  }

  /** One has heard something. */
  hear(job: Records): void {
    this.#open.get(job.ticket)?.hear(job);
  }
}

/** A session that this environment holds. */
export class SessionHandle {
  readonly #sessions: Sessions;
  readonly #host: number;
  readonly #number: number;
  readonly #listener: SessionListener;
  #decided: (() => void) | undefined;
  #ended: (() => void) | undefined;

  constructor(
    sessions: Sessions,
    host: number,
    number: number,
    listener: SessionListener,
    decided: () => void,
    ended: () => void,
  ) {
    this.#sessions = sessions;
    this.#host = host;
    this.#number = number;
    this.#listener = listener;
    this.#decided = decided;
    this.#ended = ended;
  }

  /** Calls an action with encoded arguments. */
  async call(
    action: string,
    args: Uint8Array,
    caller: CallerKind,
    signal: Stop | undefined,
  ): Promise<Uint8Array> {
    const { environment, tickets } = this.#sessions;
    const bytes = await cancellable(tickets, this.#host, signal, (ticket, may) =>
      native.sessionCall(environment, this.#number, action, args, caller, ticket, may),
    );
    return bytes ?? new Uint8Array(0);
  }

  /** Begins or ends to hear the events of a name; resolves when that has taken effect. */
  async subscribe(event: string, wanted: boolean): Promise<void> {
    const { environment, tickets } = this.#sessions;
    await tickets.wait((ticket) =>
      native.sessionSubscribe(environment, this.#number, event, wanted, ticket),
    );
  }

  /** The client goes; nothing more is heard. */
  close(): void {
    if (this.#over()) native.sessionClose(this.#number);
  }

  hear(job: Records): void {
    switch (job.number(0)) {
      case Heard.ACCEPTED: {
        const { connId, actor } = JSON.parse(job.text(1)) as { connId: string; actor: ErrorActor };
        this.#decide();
        this.#listener.accepted(connId, actor);
        return;
      }
      case Heard.EVENT:
        this.#listener.event(job.text(1), job.bytes(2));
        return;
      case Heard.CLOSED: {
        const { code, reason } = JSON.parse(job.text(1)) as { code: number; reason: string };
        this.close();
        this.#listener.closed(code, reason);
        return;
      }
      default: {
        const record = readRecord(job.text(3));
        const error = fromRecord(record, this.#sessions.tickets.failures.causeOf(record));
        this.close();
        this.#listener.refused(error);
      }
    }
  }

  #decide(): void {
    this.#decided?.();
    this.#decided = undefined;
  }

  #over(): boolean {
    if (this.#ended === undefined) return false;
    this.#decide();
    this.#ended();
    this.#ended = undefined;
    return true;
  }
}

/** Waits for a call that `signal` gives up. */
export async function cancellable(
  tickets: Tickets,
  host: number,
  signal: Stop | undefined,
  start: (ticket: number, isCancellable: boolean) => void,
): Promise<Uint8Array | null> {
  if (signal?.aborted) throw signal.reason;
  let unlisten: (() => void) | undefined;
  try {
    return await tickets.wait((ticket) => {
      if (signal !== undefined) {
        unlisten = onAbort(signal, () => {
          if (tickets.abandon(ticket, signal.reason)) native.cancel(host, ticket);
        });
      }
      start(ticket, signal !== undefined);
    });
  } finally {
    unlisten?.();
  }
}
