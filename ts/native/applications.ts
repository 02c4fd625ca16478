/**
 * Applications: an author's functions that answer requests which are for no actor.
 *
 * 1. Each request is answered once.
 * 2. What runs here holds the process, as what is asked of actors does.
 */
import * as native from "../../index.js";
import type { ConnectionRequest } from "./connections.js";
import { encodeRecord, recordOf } from "./errors.js";
import { factoryOf } from "./factory.js";
import type { Records } from "./jobs.js";
import type { KeepAlive } from "./keepalive.js";

/** Answers a packed request; the signal fires when nobody waits for it any more. */
export type Application = (request: Uint8Array, signal: AbortSignal) => Promise<Uint8Array>;

/** What a type of actors answers: 1 where a raw socket with this request outlives a sleep, else 0. */
function choiceOf(factory: number): Application | undefined {
  const hibernates = factoryOf(factory)?.callbacks.hibernatesWebSocket;
  if (hibernates === undefined) return undefined;
  return async (request) => {
    const head = JSON.parse(Buffer.from(request).toString("utf8")) as ConnectionRequest;
    return Uint8Array.of(hibernates(head) ? 1 : 0);
  };
}

/** Those of one environment. */
export class Applications {
  readonly #keepAlive: KeepAlive;
  readonly #known = new Map<number, Application>();
  readonly #open = new Map<number, AbortController>();

  constructor(keepAlive: KeepAlive) {
    this.#keepAlive = keepAlive;
  }

  /** Takes one in, in the place of what had its number. */
  set(number: number, application: Application): void {
    this.#known.set(number, application);
  }

  /** Lets go of one: what comes for it fails from now on. */
  forget(number: number): void {
    this.#known.delete(number);
  }

  /** A request is to be answered. */
  asked(job: Records): void {
    const { ticket } = job;
    const number = job.number(0);
    const application = job.number(1) === 1 ? choiceOf(number) : this.#known.get(number);
    const gone = new AbortController();
    this.#open.set(ticket, gone);
    this.#keepAlive.hold();
    // Of memory of its own: what came is a part of a batch.
    const request = new Uint8Array(job.bytes(2));
    const run = async (): Promise<Uint8Array> => {
      if (application === undefined) throw new Error("nobody of this number answers");
      return application(request, gone.signal);
    };
    run()
      .then(
        (answer) => native.answerAsked(ticket, 0, answer),
        (thrown) => native.answerAsked(ticket, 1, encodeRecord(recordOf(thrown))),
      )
      .finally(() => {
        // Of an answer that still comes its exchange says when nobody waits any more.
        this.#open.delete(ticket);
        this.#keepAlive.release();
      });
  }

  /** Nobody waits for the answer any more. */
  unasked(job: Records): void {
    const gone = this.#open.get(job.ticket);
    this.#open.delete(job.ticket);
    gone?.abort(new DOMException("the client has gone", "AbortError"));
  }
}
