/** Clients: one accessor for each definition, each making handles. */

import type { Definition } from "../definition";
import { checkKeys, describe } from "../definition/keys";
import { checkedArgument, invalidArgument } from "../errors";
import type { Row, Target } from "../native-half";
import { fixed, made } from "./connection";
import { unlessAborted } from "./departures";
import { makeHandle } from "./handle";
import { readKey } from "./key";
import { type Origin, Reach, readInput } from "./reach";

/** Makes clients for the definitions of one registry. */
export type ClientMaker = (origin: () => Origin) => object;

const later = ["createInRegion", "region", "poolName"];

/** Prepares the class of the clients of a registry. */
export function clientMaker(definitions: ReadonlyMap<string, Definition>): ClientMaker {
  class Client extends BaseClient {}
  for (const name of definitions.keys()) {
    Object.defineProperty(Client.prototype, name, {
      configurable: true,
      get(this: BaseClient) {
        const accessor = accessorOf(this, name);
        // Kept on the client: the next access is a property.
        Object.defineProperty(this, name, { value: accessor });
        return accessor;
      },
    });
  }
  return (origin) => new Client(definitions, origin);
}

/** An accessor of a client. No method: every name that is not reserved may be an actor's. */
let accessorOf: (client: BaseClient, name: string) => Accessor;

class BaseClient {
  readonly #definitions: ReadonlyMap<string, Definition>;
  readonly #origin: () => Origin;

  constructor(definitions: ReadonlyMap<string, Definition>, origin: () => Origin) {
    this.#definitions = definitions;
    this.#origin = origin;
  }

  static {
    accessorOf = (client, name) =>
      new Accessor(name, client.#definitions.get(name), client.#origin);
  }

  get(name: string, key?: unknown, options?: unknown): object {
    return accessorOf(this, name).get(key, options);
  }

  getOrCreate(name: string, key?: unknown, options?: unknown): object {
    return accessorOf(this, name).getOrCreate(key, options);
  }

  getForId(name: string, actorId: unknown, options?: unknown): object {
    return accessorOf(this, name).getForId(actorId, options);
  }

  create(name: string, key?: unknown, options?: unknown): Promise<object> {
    return accessorOf(this, name).create(key, options);
  }

  async dispose(): Promise<void> {}
}

class Accessor {
  readonly #name: string;
  readonly #definition: Definition | undefined;
  readonly #origin: () => Origin;

  constructor(name: string, definition: Definition | undefined, origin: () => Origin) {
    if (typeof name !== "string")
      throw new TypeError(`an actor's name is a string, not ${describe(name)}`);
    this.#name = name;
    this.#definition = definition;
    this.#origin = origin;
  }

  get(key?: unknown, options?: unknown): object {
    const how = readOptions(options, "get", []);
    return this.#handle({ name: this.#name, key: readKey(key) }, how);
  }

  getOrCreate(key?: unknown, options?: unknown): object {
    const how = readOptions(options, "getOrCreate", ["createWithInput"]);
    const target = { name: this.#name, key: readKey(key), create: true };
    return this.#handle(target, how);
  }

  getForId(actorId: unknown, options?: unknown): object {
    if (typeof actorId !== "string") {
      throw invalidArgument(`the id of an actor is a string, not ${describe(actorId)}`);
    }
    const how = readOptions(options, "getForId", []);
    return this.#handle({ id: actorId }, how);
  }

  async create(key?: unknown, options?: unknown): Promise<object> {
    const how = readOptions(options, "create", ["input"]);
    const { signal, input } = how;
    const target = { name: this.#name, key: readKey(key) };
    const { host } = this.#origin();
    const made = async (): Promise<Row> => {
      const bytes = await readInput(this.#definition, input);
      const opened = typeof host === "function" ? await host() : host;
      // Nobody waits for it any more, so it is not made.
      signal?.throwIfAborted();
      return opened.ensure(target, "create", bytes ?? undefined);
    };
    signal?.throwIfAborted();
    const row = await unlessAborted(made(), signal);
    return this.#handle({ id: row.id }, { ...how, input: undefined });
  }

  #handle(target: Target, how: HandleOptions): object {
    const reached = { target, definition: this.#definition, ...how };
    return makeHandle(new Reach(this.#origin, reached), this.#definition);
  }
}

/** What options of a handle say. */
interface HandleOptions {
  readonly signal: AbortSignal | undefined;
  readonly input: unknown;
  readonly params: (() => Promise<Uint8Array>) | undefined;
}

function readOptions(
  options: unknown,
  method: string,
  inputKeys: readonly string[],
): HandleOptions {
  if (options === undefined) return { signal: undefined, input: undefined, params: undefined };
  const known = ["signal", "params", "getParams", ...inputKeys];
  const keys = { place: `options of ${method}()`, known, later };
  checkedArgument(() => checkKeys(options, keys));
  const given = options as Record<string, unknown>;
  const { signal } = given;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw invalidArgument(`signal of ${method}() is ${describe(signal)}, not an AbortSignal`);
  }
  const input = inputKeys[0] === undefined ? undefined : given[inputKeys[0]];
  return { signal, input, params: readParams(given, method) };
}

/** What is passed to the hooks of connections; `undefined` where there are to be none. */
function readParams(
  { params, getParams }: Record<string, unknown>,
  method: string,
): HandleOptions["params"] {
  if (getParams === undefined) return params === undefined ? undefined : fixed(params);
  if (params !== undefined) {
    throw invalidArgument(`options of ${method}() have both params and getParams: give one`);
  }
  if (typeof getParams !== "function") {
    throw invalidArgument(`getParams of ${method}() is ${describe(getParams)}, not a function`);
  }
  return made(getParams as () => unknown);
}
