/**
 * One actor, reached over the network.
 *
 * 1. Making it sends nothing.
 * 2. An id that had to be looked up is kept until the server does not know it any more.
 */

import { toCompat } from "../codec/compat";
import { RivetError, readingArgument } from "../errors";
import { EitherSignal, type Stop } from "../native/listen";
import type { QueueSendResult } from "../types";
import type { Encoding } from "./encoding";
import { clientError, nameOf } from "./errors";
import { ask, exchange, type Request, withRetries } from "./http";
import type { Settings } from "./options";
import { creationBody, gatewayPath, serializeKey, type Target } from "./target";

/** What a handle was made with. */
export interface Reached {
  readonly target: Target;
  readonly params?: unknown;
  readonly getParams?: (() => unknown) | undefined;
  /** What ends every call: of the client, and of the handle. */
  readonly signals: readonly AbortSignal[];
}

/**
 * Asks the manager of the server for an actor; resolves with its id.
 *
 * @throws `actor.not_found`, and what the manager answers.
 */
export async function manage(
  settings: Settings,
  query: URLSearchParams,
  request: Request,
): Promise<string> {
  const { token } = settings;
  const headers = {
    "content-type": "application/json",
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  const answer = await ask(settings, `/actors?${query}`, { ...request, headers });
  const { actor, actors } = (answer ?? {}) as { actor?: unknown; actors?: readonly unknown[] };
  const row = (actor ?? actors?.[0]) as { actor_id?: unknown } | undefined;
  if (typeof row?.actor_id === "string") return row.actor_id;
  throw new RivetError("actor", "not_found", "there is no such actor", {
    public: true,
    statusCode: 404,
  });
}

export class RemoteActor {
  readonly settings: Settings;
  readonly encoding: Encoding;
  readonly #reached: Reached;
  #id: Promise<string> | undefined;

  constructor(settings: Settings, encoding: Encoding, reached: Reached) {
    this.settings = settings;
    this.encoding = encoding;
    this.#reached = reached;
  }

  async call(name: string, args: readonly unknown[], signal?: AbortSignal): Promise<unknown> {
    const message = { args: readingArgument(() => this.encoding.lift(args, "args")) };
    const answer = await this.#post(`/action/${encodeURIComponent(name)}`, message, signal);
    return (answer as { output?: unknown } | null)?.output;
  }

  async send(
    name: string,
    body: unknown,
    how: { wait: boolean; timeout: number | undefined; dedupeKey?: string; delay?: number },
    signal?: AbortSignal,
  ): Promise<QueueSendResult<unknown> | undefined> {
    const message = { body: readingArgument(() => this.encoding.lift(body, "body")), ...how };
    const answer = await this.#post(`/queue/${encodeURIComponent(name)}`, message, signal);
    return how.wait ? (answer as QueueSendResult<unknown>) : undefined;
  }

  /** The id of the actor, which is created if the handle says so. */
  async resolve(): Promise<string> {
    const { target } = this.#reached;
    if ("id" in target) return target.id;
    const { name, key, create } = target;
    const query = new URLSearchParams({ namespace: this.settings.namespace });
    if (create !== undefined) {
      const body = creationBody(name, key, create);
      return this.#manage(query, { method: "PUT", body });
    }
    query.set("name", name);
    query.set("key", serializeKey(key));
    return this.#manage(query, { method: "GET" });
  }

  /** @throws once the client was disposed, or the handle's signal has fired. */
  checkOpen(): void {
    for (const signal of this.#reached.signals) signal.throwIfAborted();
  }

  /** `fetch` on `path` within the actor. */
  async fetch(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    for (const [name, value] of Object.entries(await this.#headers())) headers.set(name, value);
    const { signals } = this.#reached;
    // As one signal: the body may be read for long after this.
    const signal = AbortSignal.any(init.signal ? [...signals, init.signal] : [...signals]);
    return exchange(this.settings, await this.path(path), { ...init, headers, signal });
  }

  /** Where `path` within the actor is, below the base. */
  async path(path: string): Promise<string> {
    const found = gatewayPath(this.settings, this.#reached.target, path);
    if (found !== undefined) return found;
    this.#id ??= this.resolve();
    try {
      return gatewayPath(this.settings, { id: await this.#id }, path) as string;
    } catch (error) {
      this.#id = undefined;
      throw error;
    }
  }

  /** Says that the server did not know the actor (2). */
  forget(): void {
    this.#id = undefined;
  }

  /**
   * What the connection hooks of the actor get, in its form on the network; undefined for nothing.
   *
   * @throws `client.get_params_failed`
   */
  async params(own?: unknown): Promise<unknown> {
    const { params, getParams } = this.#reached;
    let given = own ?? params;
    if (given === undefined && getParams !== undefined) {
      try {
        given = await getParams();
      } catch (error) {
        throw clientError("get_params_failed", "getParams of the handle failed", error);
      }
    }
    if (given === undefined || given === null) return undefined;
    return readingArgument(() => toCompat(given, "params"));
  }

  async #post(path: string, message: object, signal: AbortSignal | undefined): Promise<unknown> {
    const body = this.encoding.write(message);
    const stop = this.#stop(signal);
    stop?.throwIfAborted();
    return withRetries(this.settings, stop, async () => {
      const headers = await this.#headers();
      headers["content-type"] = this.encoding.contentType;
      const request = { method: "POST", headers, body, stop };
      const lookedUp = this.#id;
      try {
        return await ask(this.settings, await this.path(path), request);
      } catch (error) {
        if (lookedUp === undefined || nameOf(error) !== "actor.not_found") throw error;
        // Destroyed since it was looked up: the key may have another one.
        this.forget();
        return ask(this.settings, await this.path(path), request);
      }
    });
  }

  async #headers(): Promise<Record<string, string>> {
    const params = await this.params();
    return {
      "x-rivet-encoding": this.encoding.name,
      ...(params !== undefined && { "x-rivet-conn-params": ascii(JSON.stringify(params)) }),
    };
  }

  /** Asks the manager for the actor; resolves with its id. */
  async #manage(query: URLSearchParams, asked: { method: string; body?: string }): Promise<string> {
    const request = { ...asked, stop: this.#stop(undefined) };
    return withRetries(this.settings, request.stop, () => manage(this.settings, query, request));
  }

  /** What ends a call that was given `signal`. */
  #stop(signal: AbortSignal | undefined): Stop | undefined {
    const { signals } = this.#reached;
    const all: readonly Stop[] = signal === undefined ? signals : [...signals, signal];
    return all.length === 0 ? undefined : all.reduce((a, b) => new EitherSignal(a, b));
  }
}

/** JSON as a header has it: DEL and what is beyond ASCII are escaped. */
function ascii(json: string): string {
  return json.replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
