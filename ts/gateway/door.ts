/**
 * The way in for requests of a server that is not ours: `handler()` and `attach()`.
 *
 * 1. What the gateway answers is let go of when its body was read, or nobody reads it any more.
 * 2. A request that is given up is given up in the actor, too.
 */

import { checkKeys, describe } from "../definition/keys";
import { dispatch, type Host } from "../native-half";
import { type AnswerHead, incoming, type Pieces, send, unpack } from "./message";
import { readGuard } from "./options";

/** Where requests come in, and from whom. */
export interface DoorOptions {
  /** The path before everything that is for actors. Default `/api/rivet`. */
  basePath?: string | undefined;
  /**
   * What clients have to authenticate with. Without one nobody lists, ends or puts to sleep actors from
   * there, since it is not known who can reach the server.
   */
  token?: string | undefined;
  /** Without a token: the origins whose pages may call, beside those of the server itself. */
  origins?: readonly string[] | undefined;
  /** Without a token: the names of the server, beside addresses and `localhost`. */
  hosts?: readonly string[] | undefined;
}

/** The options, checked. */
export interface Guard {
  readonly token: string | undefined;
  readonly origins: readonly string[];
  readonly hosts: readonly string[];
}

/** A request, on its way to the gateway. */
export interface Asked {
  readonly method: string;
  /** The path and the query, behind the base path. */
  readonly uri: string;
  readonly headers: (readonly [name: string, value: string])[];
}

/** What the gateway answered. */
export interface Answered {
  readonly status: number;
  readonly headers: [name: string, value: string][];
  /** All of the body, or how it comes. */
  readonly body: Uint8Array | ReadableStream<Uint8Array>;
}

const BASE_PATH = "/api/rivet";

export class Door {
  readonly basePath: string;
  readonly #guard: Guard & { readonly exposeErrors: boolean };
  readonly #open: () => Promise<Host>;
  /** The gateways of the hosts there were: a host that was closed is opened anew. */
  readonly #gateways = new WeakMap<Host, Promise<number>>();

  constructor(
    open: () => Promise<Host>,
    basePath: string,
    guard: Guard & { readonly exposeErrors: boolean },
  ) {
    this.basePath = basePath;
    this.#guard = guard;
    this.#open = open;
  }

  /** The path behind the base path; `undefined` for one elsewhere. */
  within(uri: string): string | undefined {
    if (this.basePath === "") return uri;
    if (!uri.startsWith(this.basePath)) return undefined;
    const rest = uri.slice(this.basePath.length);
    if (rest === "" || rest.startsWith("?")) return `/${rest}`;
    return rest.startsWith("/") ? rest : undefined;
  }

  /** The number of the gateway that answers. */
  async gateway(): Promise<number> {
    const host = await this.#open();
    let gateway = this.#gateways.get(host);
    if (gateway === undefined) {
      gateway = host.listen({ ...this.#guard, port: 0 }).then(({ listener }) => listener);
      this.#gateways.set(host, gateway);
    }
    return gateway;
  }

  /** Has a request answered, whose body is there, comes in pieces, or is none. */
  async ask(
    asked: Asked,
    body: Uint8Array | Pieces | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Answered> {
    const gateway = await this.gateway();
    signal?.throwIfAborted();
    const { http } = dispatch;
    const pieces = body === undefined || body instanceof Uint8Array ? undefined : body;
    const whole = pieces === undefined ? ((body as Uint8Array | undefined) ?? NOTHING) : null;
    const { exchange, answer } = http.ask(gateway, JSON.stringify(asked), whole);
    const letGo = (): void => {
      signal?.removeEventListener("abort", letGo);
      http.letGo(exchange);
      // What is left of it nobody takes: its source is not to wait for that.
      pieces?.cancel().catch(() => {});
    };
    signal?.addEventListener("abort", letGo, { once: true });
    if (pieces !== undefined) {
      const sides = http.exchange(exchange);
      // The gateway sees a body that is not whole.
      send(sides, { reader: pieces }).catch(() => sides.fail());
    }
    try {
      const { head, body: small } = unpack<AnswerHead>(await answer);
      const { status, headers, streams } = head;
      if (!streams) {
        letGo();
        return { status, headers, body: small };
      }
      return { status, headers, body: incoming(http.exchange(exchange), letGo) };
    } catch (error) {
      letGo();
      signal?.throwIfAborted();
      throw error;
    }
  }
}

const NOTHING = new Uint8Array(0);

/** Checks the options of `method`. */
export function readDoor(given: unknown, method: string): { basePath: string; guard: Guard } {
  checkKeys(given, {
    place: `options of ${method}`,
    known: ["basePath", "token", "origins", "hosts"],
  });
  const { basePath = BASE_PATH } = given;
  if (typeof basePath !== "string" || /[?#]/.test(basePath)) {
    throw new TypeError(`basePath of ${method} is ${describe(basePath)}, not a path`);
  }
  const trimmed = basePath.replace(/\/+$/, "");
  const rooted = trimmed === "" || trimmed.startsWith("/") ? trimmed : `/${trimmed}`;
  return { basePath: rooted, guard: readGuard(given, method) };
}
