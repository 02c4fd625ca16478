/**
 * Clients over the network.
 *
 * 1. Making one, its accessors and its handles sends nothing.
 * 2. Names of actors are not known here: every member that is not the client's own is an accessor.
 */

import { readKey } from "../calls/key";
import { checkKeys, describe } from "../definition/keys";
import { checkedArgument, invalidArgument } from "../errors";
import { EitherSignal, type Stop } from "../native/listen";
import type { AnyRegistry } from "../types";
import type { Connection } from "./connection";
import { encodings } from "./encoding";
import { clientError } from "./errors";
import { makeHandle, readSignal } from "./handle";
import { withRetries } from "./http";
import { type ClientOptions, readOptions, type Settings } from "./options";
import { manage, type Reached, RemoteActor } from "./remote";
import { creationBody, type Target } from "./target";
import type { RemoteClient } from "./types";

/**
 * Makes a client of the server at `endpoint`: `createClient<typeof registry>("http://localhost:6420")`.
 *
 * @throws TypeError that names the option.
 */
export function createClient<R extends AnyRegistry>(
  endpoint?: string | ClientOptions,
): RemoteClient<R> {
  const client = new Client(readOptions(endpoint));
  const accessors = new Map<string, Accessor>();
  const raw = {
    get: (name: string, ...rest: [unknown, unknown]) => client.accessor(name).get(...rest),
    getOrCreate: (name: string, ...rest: [unknown, unknown]) =>
      client.accessor(name).getOrCreate(...rest),
    getForId: (name: string, ...rest: [unknown, unknown]) =>
      client.accessor(name).getForId(...rest),
    create: async (name: string, ...rest: [unknown, unknown]) =>
      client.accessor(name).create(...rest),
    dispose: async () => client.dispose(),
  };
  const proxy = new Proxy(raw, {
    get(target, name, receiver) {
      if (typeof name === "symbol" || name in target || name === "then" || name === "toJSON") {
        return Reflect.get(target, name, receiver);
      }
      const accessor = accessors.get(name) ?? client.accessor(name);
      accessors.set(name, accessor);
      return accessor;
    },
  });
  return proxy as unknown as RemoteClient<R>;
}

/** What is said of a handle beside whom it calls. */
interface HandleOptions extends Omit<Reached, "target" | "signals"> {
  readonly signal: AbortSignal | undefined;
}

class Client {
  readonly #settings: Settings;
  readonly #connections = new Set<Connection>();
  readonly #end = new AbortController();

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  accessor(name: string): Accessor {
    if (typeof name !== "string") {
      throw new TypeError(`an actor's name is a string, not ${describe(name)}`);
    }
    return new Accessor(name, this.#settings, this);
  }

  handle(target: Target, { signal, ...how }: HandleOptions): object {
    const signals = signal === undefined ? [this.#end.signal] : [this.#end.signal, signal];
    const encoding = encodings[this.#settings.encoding];
    const actor = new RemoteActor(this.#settings, encoding, { target, signals, ...how });
    return makeHandle(actor, (connection) => this.#keep(connection));
  }

  /** Fires with `signal`, and when the client is disposed. */
  ends(signal: AbortSignal | undefined): Stop {
    return signal === undefined ? this.#end.signal : new EitherSignal(this.#end.signal, signal);
  }

  dispose(): void {
    this.#end.abort(clientError("disposed", "the client was disposed"));
    for (const connection of [...this.#connections]) connection.dispose();
  }

  #keep(connection: Connection): void {
    this.#connections.add(connection);
    connection.statuses.add((status) => {
      if (status === "idle") this.#connections.delete(connection);
    });
  }
}

class Accessor {
  readonly #name: string;
  readonly #settings: Settings;
  readonly #client: Client;

  constructor(name: string, settings: Settings, client: Client) {
    this.#name = name;
    this.#settings = settings;
    this.#client = client;
  }

  get(key?: unknown, options?: unknown): object {
    const { how } = readHandleOptions(options, "get", []);
    return this.#handle({ name: this.#name, key: readKey(key) }, how);
  }

  getOrCreate(key?: unknown, options?: unknown): object {
    const { how, input } = readHandleOptions(options, "getOrCreate", ["createWithInput"]);
    return this.#handle({ name: this.#name, key: readKey(key), create: { input } }, how);
  }

  getForId(actorId: unknown, options?: unknown): object {
    if (typeof actorId !== "string" || actorId === "") {
      throw invalidArgument(`the id of an actor is a string, not ${describe(actorId)}`);
    }
    const { how } = readHandleOptions(options, "getForId", []);
    return this.#handle({ id: actorId }, how);
  }

  async create(key?: unknown, options?: unknown): Promise<object> {
    const { how, input } = readHandleOptions(options, "create", ["input"]);
    const body = creationBody(this.#name, readKey(key), { input });
    const query = new URLSearchParams({ namespace: this.#settings.namespace });
    const stop = this.#client.ends(how.signal);
    const request = { method: "POST", body, stop };
    const id = await withRetries(this.#settings, stop, () =>
      manage(this.#settings, query, request),
    );
    return this.#handle({ id }, how);
  }

  #handle(target: Target, how: HandleOptions): object {
    return this.#client.handle(target, how);
  }
}

function readHandleOptions(
  options: unknown,
  method: string,
  inputKeys: readonly string[],
): { how: HandleOptions; input: unknown } {
  const given = (options ?? {}) as Record<string, unknown>;
  const keys = {
    place: `options of ${method}()`,
    known: ["signal", "params", "getParams", ...inputKeys],
    later: ["createInRegion", "region", "poolName"],
  };
  checkedArgument(() => checkKeys(given, keys));
  const { params, getParams, signal } = given;
  if (getParams !== undefined && typeof getParams !== "function") {
    throw invalidArgument(`getParams of ${method}() is ${describe(getParams)}, not a function`);
  }
  return {
    how: { params, getParams: getParams as Reached["getParams"], signal: readSignal(signal) },
    input: inputKeys[0] === undefined ? undefined : given[inputKeys[0]],
  };
}
