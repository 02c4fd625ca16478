/**
 * The body of a request that comes in pieces, and that of its answer, which Rust knows by a number.
 *
 * 1. Nobody is ahead of the socket by more than a few pieces: whoever writes waits.
 * 2. It is over when its client has gone, which a reader and a writer hear as an error.
 */
import * as native from "../../index.js";
import { plainly } from "./host.js";
import type { Tickets } from "./tickets.js";

export class Exchange {
  readonly #environment: number;
  readonly #number: number;
  readonly #tickets: Tickets;
  /** The answer was ended, or broken off, from here. */
  hasEnded = false;

  constructor(environment: number, number: number, tickets: Tickets) {
    this.#environment = environment;
    this.#number = number;
    this.#tickets = tickets;
  }

  /** The next piece of what the client sends; null at its end. */
  read(): Promise<Uint8Array | null> {
    return this.#asked((ticket) => native.exchangeRead(this.#environment, this.#number, ticket));
  }

  /** No more is wanted of what the client sends. */
  cancel(): void {
    native.exchangeCancel(this.#number, true);
  }

  /** Resolves when there was room for a piece of the answer. */
  async write(bytes: Uint8Array): Promise<void> {
    await this.#asked((ticket) =>
      native.exchangeWrite(this.#environment, this.#number, bytes, ticket),
    );
  }

  /** Ends the answer. */
  async end(): Promise<void> {
    this.hasEnded = true;
    await this.#asked((ticket) => native.exchangeEnd(this.#environment, this.#number, ticket));
  }

  /** Breaks the answer off: the client sees that it is not whole. */
  fail(): void {
    this.hasEnded = true;
    native.exchangeCancel(this.#number, false);
  }

  /** Resolves when the answer has ended or its client has gone. Does not hold the process. */
  async closed(): Promise<void> {
    const asked = (ticket: number) =>
      plainly(() => native.exchangeClosed(this.#environment, this.#number, ticket));
    await this.#tickets.wait(asked, { holds: false });
  }

  #asked(ask: (ticket: number) => void): Promise<Uint8Array | null> {
    return this.#tickets.wait((ticket) => plainly(() => ask(ticket)));
  }
}
