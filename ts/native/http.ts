/** What crosses of HTTP, in one environment. */
import { Applications } from "./applications.js";
import { Exchange } from "./exchange.js";
import { ask, type ForeignAnswer, letGo, Tunnel } from "./foreign.js";
import type { KeepAlive } from "./keepalive.js";
import type { Tickets } from "./tickets.js";

export class Http {
  readonly applications: Applications;
  readonly #environment: number;
  readonly #tickets: Tickets;

  constructor(environment: number, tickets: Tickets, keepAlive: KeepAlive) {
    this.applications = new Applications(keepAlive);
    this.#environment = environment;
    this.#tickets = tickets;
  }

  /** The bodies of a request, by the number that came with it. */
  exchange(number: number): Exchange {
    return new Exchange(this.#environment, number, this.#tickets);
  }

  /** Has the gateway `listener` answer a request; without a body that is written to its exchange. */
  ask(listener: number, head: string, body: Uint8Array | null): ForeignAnswer {
    return ask(this.#environment, this.#tickets, listener, head, body);
  }

  /** Lets go of a request that {@link ask} began. */
  letGo(exchange: number): void {
    letGo(exchange);
  }

  /** Begins a connection with the gateway `listener`, of a client at `address`. */
  tunnel(listener: number, address?: string): Tunnel {
    return new Tunnel(this.#environment, this.#tickets, listener, address);
  }
}
