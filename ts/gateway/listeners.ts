/**
 * Where a registry listens.
 *
 * 1. What listens keeps the process alive, until it is closed or its registry is shut down.
 * 2. Once a registry is being shut down nothing begins to listen.
 */

import { isIPv6 } from "node:net";

import { RivetError } from "../errors";
import { clockwork, crossing, type Host, type Listening } from "../native-half";
import { readDeadline } from "../registry/deadline";
import type { Setup } from "../registry/options";
import { install } from "./applications";
import type { Listen } from "./options";

/** How a listener is closed. */
export interface CloseOptions {
  /** How long requests that have begun may take, in milliseconds. Default 5,000. */
  deadline?: number | undefined;
}

/** Where a registry can be reached. */
export interface Listener {
  /** The address that is listened on. */
  readonly host: string;
  /** The port that is listened on. */
  readonly port: number;
  /** What clients are given. */
  readonly url: string;
  /**
   * Accepts nothing more, and closes what is open. Requests that have begun are answered before, within
   * the deadline. Resolves when nothing of it is left.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** How long requests may take that are open when a listener is closed, in milliseconds. */
const CLOSE_MS = 5_000;

export class Listeners {
  readonly #open = new Set<(graceMs: number) => Promise<void>>();
  #closed = false;

  /** Begins to listen in front of the host that `open` gives. */
  async listen(open: () => Promise<Host>, listen: Listen, setup: Setup): Promise<Listener> {
    const address = await crossing.addressOf(listen.host);
    const host = await open();
    const { exposeErrors, logging } = setup;
    const { port, guard, publicDir, application } = listen;
    const { listener, ...at } = placed(
      await host.listen({
        ...guard,
        host: address,
        port,
        exposeErrors,
        ...(publicDir === undefined ? {} : { publicDir }),
        ...(application === undefined
          ? {}
          : { application: install(placeOf(address, port), application, logging) }),
      }),
    );
    if (exposeErrors) {
      const msg = "clients read what failed inside: exposeErrors is for development";
      logging.write("warn", { host: at.host, port: at.port }, { msg });
    }
    const held = clockwork.holdProcess();
    let ending: Promise<void> | undefined;
    const close = (graceMs: number): Promise<void> => {
      ending ??= host.unlisten(listener, graceMs).finally(() => {
        this.#open.delete(close);
        held.unref();
      });
      return ending;
    };
    this.#open.add(close);
    if (this.#closed) {
      await close(0);
      throw new RivetError("registry", "shut_down", "the registry was shut down");
    }
    return {
      ...at,
      url: urlOf(at.host, at.port),
      close: async (options = {}) => close(readDeadline(options, "close()", CLOSE_MS)),
    };
  }

  /** Closes all of them (2). */
  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#open].map((close) => close(graceMs)));
  }
}

let anywhere = 0;

/** Who listens at the same place again replaces the application there. */
function placeOf(address: string, port: number): string {
  if (port !== 0) return `${address} ${port}`;
  anywhere += 1;
  return `${address} any ${anywhere}`;
}

/** Where it listens, of one that listens somewhere. */
function placed({ listener, host, port }: Listening) {
  if (host === null || port === null) throw new Error("it listens nowhere");
  return { listener, host, port };
}

/** Nobody can call the address that stands for all of them. */
function urlOf(host: string, port: number): string {
  const callable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${isIPv6(callable) ? `[${callable}]` : callable}:${port}`;
}
