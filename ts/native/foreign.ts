/** Requests and connections of a server that is run here, answered by a gateway. */
import * as native from "../../index.js";
import { plainly } from "./host.js";
import type { Tickets } from "./tickets.js";

/** A request that was begun. */
export interface ForeignAnswer {
  /** By which its bodies are read and written, and it is let go. */
  readonly exchange: number;
  /** The head of the answer, with a small body behind it. */
  readonly answer: Promise<Uint8Array>;
}

const NOTHING = new Uint8Array(0);

/** Begins a request; without a body that is written to its exchange. */
export function ask(
  environment: number,
  tickets: Tickets,
  listener: number,
  head: string,
  body: Uint8Array | null,
): ForeignAnswer {
  let exchange = 0;
  const answered = tickets.wait((ticket) => {
    exchange = plainly(() => native.gatewayRequest(environment, listener, head, body, ticket));
  });
  return { exchange, answer: answered.then((bytes) => bytes ?? NOTHING) };
}

/** Lets go of a request or a tunnel. */
export function letGo(number: number): void {
  native.letGo(number);
}

/** A connection whose bytes are carried here. */
export class Tunnel {
  readonly #environment: number;
  readonly #tickets: Tickets;
  readonly #number: number;

  constructor(environment: number, tickets: Tickets, listener: number, address?: string) {
    this.#environment = environment;
    this.#tickets = tickets;
    this.#number = plainly(() => native.tunnelOpen(environment, listener, address));
  }

  /** What the gateway sends; null at its end. Does not hold the process. */
  read(): Promise<Uint8Array | null> {
    return this.#asked((ticket) => native.tunnelRead(this.#environment, this.#number, ticket));
  }

  /** Hands over what the client sends, or its end. */
  async write(bytes: Uint8Array | null): Promise<void> {
    await this.#asked((ticket) =>
      native.tunnelWrite(this.#environment, this.#number, bytes, ticket),
    );
  }

  letGo(): void {
    native.letGo(this.#number);
  }

  #asked(ask: (ticket: number) => void): Promise<Uint8Array | null> {
    return this.#tickets.wait((ticket) => plainly(() => ask(ticket)), { holds: false });
  }
}
