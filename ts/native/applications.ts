/**
 * Applications: an author's functions that answer requests which are for no actor.
 *
 * 1. Each request is answered once.
 * 2. What runs here holds the process, as what is asked of actors does.
 */
import * as native from "../../index.js";
import { encodeRecord, recordOf } from "./errors.js";
import type { Records } from "./jobs.js";
import type { KeepAlive } from "./keepalive.js";

/** Answers a packed request; the signal fires when nobody waits for it any more. */
export type Application = (request: Uint8Array, signal: AbortSignal) => Promise<Uint8Array>;

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

  /** A request is to be answered. */
  asked(job: Records): void {
    const { ticket } = job;
    const application = this.#known.get(job.number(0));
    const gone = new AbortController();
    this.#open.set(ticket, gone);
    this.#keepAlive.hold();
    // Of memory of its own: what came is a part of a batch.
    const request = new Uint8Array(job.bytes(1));
    const run = async (): Promise<Uint8Array> => {
      if (application === undefined) throw new Error("no application has this number");
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
