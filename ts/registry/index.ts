/** A registry: the actors of a program, and the place that runs them. */

import type { Server } from "node:http";

import { Context } from "../actors/context";
import type { Scene } from "../actors/live";
import { clientMaker } from "../calls/client";
import { readKey } from "../calls/key";
import { checkKeys, describe } from "../definition/keys";
import { messageOf } from "../errors";
import { attach } from "../gateway/attach";
import { Door, type DoorOptions, readDoor } from "../gateway/door";
import { handle } from "../gateway/handler";
import { type Listener, Listeners } from "../gateway/listeners";
import { type Listen, type ListenOptions, readListen } from "../gateway/options";
import { type BackupReport, clockwork, type Hold } from "../native-half";
import type {
  ActorHandle,
  ActorKey,
  AnyActorDefinition,
  Client,
  Definitions,
  types,
} from "../types";
import { type ActorInfo, infoOf, type ManagedActor, manage } from "./actor";
import { readDeadline } from "./deadline";
import { type Leave, Opening } from "./open";
import { readSetup, type Setup, type SetupOptions } from "./options";
import { readPath } from "./path";
import type { SharedHost } from "./shared";
import { type Drain, onSignals } from "./signals";

/** How a registry is shut down. */
export interface ShutdownOptions {
  /** How long actors may take to come to rest, in milliseconds. Default 15,000. */
  deadline?: number | undefined;
}

/** How a shutdown went. */
export interface ShutdownReport {
  /** How many actors came to rest. */
  readonly drained: number;
  /** Those that did not in time, and what they were busy with. */
  readonly notDrained: readonly {
    readonly name: string;
    readonly key: string[];
    readonly holds: readonly Hold[];
  }[];
}

/** Which actors are listed. */
export interface ListOptions {
  /** Only of this name. */
  name?: string | undefined;
  /** Only those whose key begins with these parts. */
  keyPrefix?: ActorKey | undefined;
  /** How many at most. Default 100. */
  limit?: number | undefined;
  /** Continues an earlier list. */
  cursor?: string | undefined;
}

/** What an imported actor is called. */
export interface ImportOptions<N extends string = string> {
  /** The name of its definition, which has to understand what the actor stored. */
  name: N;
  /** Its key, which no actor of the name has. None is `[]`. */
  key?: ActorKey | undefined;
}

/** A part of all actors, in the order of their creation. */
export interface ActorList {
  readonly actors: ActorInfo[];
  /** Continues the list; absent at its end. */
  readonly cursor?: string;
}

/** How long a shutdown may take without a `deadline`, in milliseconds. */
const DEADLINE_MS = 15_000;

/** Where published clients look for actors when they are told nothing. */
const START_PORT = 6420;

/** How many actors a list has without a `limit`. */
const PART = 100;

export class Registry<U extends Definitions = Definitions> {
  /** For the compiler only. */
  declare readonly [types]?: U;
  /** What was given to `setup()`. */
  readonly config: Readonly<SetupOptions<U>>;
  readonly #opening: Opening;
  readonly #client: Client<this>;
  readonly #setup: Setup;
  readonly #listeners = new Listeners();
  readonly #doors = new Map<string, Door>();
  /** What was asked for on signals. */
  readonly #drains: { readonly drain: Drain; readonly deadline: number }[] = [];
  /** The host on which others took over all of its actors. */
  #takenOver: SharedHost | undefined;
  #shutdown: Promise<ShutdownReport> | undefined;

  constructor(config: SetupOptions<U>) {
    const setup = readSetup(config);
    this.config = config;
    this.#setup = setup;
    const makeClient = clientMaker(setup.definitions);
    const scene: Scene = {
      logging: setup.logging,
      deps: setup.deps,
      client: (context) => {
        const { live, call } = Context.inside(context);
        return makeClient(() => ({ host: this.#opening.actorsHost, live, call, from: context }));
      },
    };
    this.#opening = new Opening(
      setup,
      scene,
      (deadline) => this.shutdown({ deadline }),
      (by) => this.#superseded(by),
    );
    this.#client = makeClient(() => ({
      host: this.#opening.host,
      live: undefined,
      call: undefined,
      from: undefined,
    })) as Client<this>;
  }

  /** Calls the actors from this process, outside of any actor. */
  client(): Client<this> {
    return this.#client;
  }

  /** Lists the actors that exist, awake or asleep. */
  async list(options: ListOptions = {}): Promise<ActorList> {
    checkKeys(options, {
      place: "options of list()",
      known: ["name", "keyPrefix", "limit", "cursor"],
    });
    const { name, limit, cursor } = options as ListOptions;
    if (limit !== undefined && !(Number.isInteger(limit) && limit > 0)) {
      throw new TypeError(`limit of list() is ${describe(limit)}, not a whole number above 0`);
    }
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) {
      throw new TypeError(`cursor of list() is ${describe(cursor)}, which no list gave`);
    }
    const host = await this.#opening.opened;
    const found = await host.list({
      ...(name === undefined ? {} : { name }),
      ...(options.keyPrefix === undefined ? {} : { keyPrefix: readKey(options.keyPrefix) }),
      limit: limit ?? PART,
      ...(cursor === undefined ? {} : { after: Number(cursor) }),
    });
    const actors = found.actors.map(infoOf);
    // A part that is not full is the last one.
    const ended = found.cursor === null || actors.length < (limit ?? PART);
    return ended ? { actors } : { actors, cursor: String(found.cursor) };
  }

  /**
   * Makes an actor from a file that `export()` wrote, with all that it has; its schedules keep their
   * times. The file stays as it is, so the same one can make several, each under a key of its own.
   *
   * @throws rejects with `actor.already_exists`, and with `storage.not_an_actor`, `storage.corrupt` or
   * `storage.newer_schema` for the file.
   */
  async import<N extends keyof U & string>(
    path: string,
    options: ImportOptions<N>,
  ): Promise<ActorHandle<U[N]>> {
    const file = readPath(path, "import()");
    checkKeys(options, { place: "options of import()", known: ["name", "key"] });
    const { name, key } = options as ImportOptions<N>;
    if (typeof name !== "string") {
      throw new TypeError(`name of import() is ${describe(name)}, not the name of an actor`);
    }
    const host = await this.#opening.opened;
    const { id } = await host.import(file, { name, key: readKey(key) });
    return this.#client.getForId(name, id) as ActorHandle<U[N]>;
  }

  /**
   * Copies all actors into a folder, which is made or must be empty, while they go on. Opened as
   * `storage`, the copy has each actor as of one moment, with everything that was on the disk when
   * this was called. The log says every five seconds how far it is.
   *
   * @throws rejects with `storage.not_empty`, and then and on any other failure leaves nothing behind.
   */
  async backup(folder: string): Promise<BackupReport> {
    const path = readPath(folder, "backup()");
    return (await this.#opening.opened).backup(path);
  }

  /** Looks at one actor, by its id or a handle. */
  actor(which: string | ActorHandle<AnyActorDefinition> | object): ManagedActor {
    return manage(() => this.#opening.opened, which);
  }

  /**
   * Serves the actors over HTTP and WebSockets, to published clients too, and resolves when it listens.
   * Only this machine can call unless `host` says otherwise.
   *
   * @throws rejects with `gateway.token_needed` for an address that others reach, without a token, and
   * with `gateway.address_unusable`.
   */
  async listen(options: ListenOptions = {}): Promise<Listener> {
    return this.#listen(readListen(options));
  }

  /** {@link Registry.listen} on port 6420, where published clients look first. */
  async start(options: ListenOptions = {}): Promise<Listener> {
    return this.#listen(readListen(options, START_PORT));
  }

  /**
   * Has the actors answer a request of the author's own server: their answer, and errors as clients read
   * them. Connections need more than that: {@link Registry.listen} or {@link Registry.attach}.
   *
   * @param options the same each time, since what they say is kept.
   */
  async handler(request: Request, options: DoorOptions = {}): Promise<Response> {
    return handle(this.#door(options, "handler()"), request);
  }

  /**
   * Serves requests and connections that come to a `node:http` server under a path, and leaves it all
   * others.
   *
   * @returns stops that; what has begun goes on.
   */
  attach(server: Server, options: DoorOptions = {}): () => void {
    return attach(server, this.#door(options, "attach()"), this.#setup.logging);
  }

  /**
   * Lets every actor come to rest and closes the storage. Called again it gives the same report.
   * What is called afterwards is refused.
   */
  shutdown(options: ShutdownOptions = {}): Promise<ShutdownReport> {
    try {
      const deadline = readDeadline(options, "shutdown()", DEADLINE_MS);
      this.#shutdown ??= this.#close(deadline);
      return this.#shutdown;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Shuts down on SIGINT and SIGTERM, and lets the signal take its course afterwards. A second
   * signal does not wait.
   *
   * @returns stops listening.
   */
  drainOnSignals(options: ShutdownOptions = {}): () => void {
    const deadline = readDeadline(options, "shutdown()", DEADLINE_MS);
    const taken = this.#takenOver;
    const run = taken === undefined ? () => this.shutdown({ deadline }) : all(taken, deadline);
    const drain: Drain = { run };
    this.#drains.push({ drain, deadline });
    return onSignals(drain);
  }

  #listen(listen: Listen): Promise<Listener> {
    return this.#listeners.listen(() => this.#opening.opened, listen, this.#setup);
  }

  /** One for all who ask for the same. */
  #door(options: DoorOptions, method: string): Door {
    const { basePath, guard } = readDoor(options, method);
    const name = JSON.stringify([basePath, guard]);
    let door = this.#doors.get(name);
    if (door === undefined) {
      const { exposeErrors } = this.#setup;
      door = new Door(() => this.#opening.opened, basePath, { ...guard, exposeErrors });
      this.#doors.set(name, door);
    }
    return door;
  }

  async #close(deadline: number): Promise<ShutdownReport> {
    const began = clockwork.now();
    const closed = this.#listeners.close(deadline);
    const closing = this.#opening.close();
    const leave = await within(deadline, closing);
    if (leave === undefined) {
      void this.#closeLate(closing);
      return { drained: 0, notDrained: [] };
    }
    const left = Math.max(0, Math.round(deadline - (clockwork.now() - began)));
    const [report] = await Promise.all([leave(left), closed]);
    return {
      drained: report.drained,
      notDrained: report.notDrained.map(({ name, key, holds }) => ({
        name,
        key: key.map(String),
        holds,
      })),
    };
  }

  /** Whoever asked this registry to shut down on a signal means what runs by then. */
  #superseded(by: SharedHost): void {
    this.#takenOver = by;
    for (const { drain, deadline } of this.#drains.splice(0)) drain.run = all(by, deadline);
  }

  /** Closes what opens only after the deadline: it has no actors to wait for, and nobody to tell. */
  async #closeLate(closing: Promise<Leave | undefined>): Promise<void> {
    try {
      await (await closing)?.(0);
    } catch (error) {
      const msg = `the storage could not be closed after the deadline: ${messageOf(error)}`;
      this.#setup.logging.write("error", {}, { msg, error });
    }
  }
}

/** Shuts down all who are on a host. Outside of the class, so that it holds no registry. */
const all = (on: SharedHost, deadline: number) => () => on.shutdown(deadline);

/** What `promise` gives, or `undefined` once `ms` milliseconds are over. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let prevent: (() => void) | undefined;
  const over = new Promise<undefined>((resolve) => {
    prevent = clockwork.after(ms, () => resolve(undefined));
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    prevent?.();
  }
}

/**
 * Sets up the actors of a program. Nothing is opened until it is needed; what goes wrong then is told
 * to whoever needed it.
 *
 * @throws TypeError naming the option or the name, for what is unknown or wrong.
 */
export function setup<const U extends Definitions>(config: SetupOptions<U>): Registry<U> {
  return new Registry(config);
}
