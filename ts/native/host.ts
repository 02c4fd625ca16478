/**
 * A host, as callers in this environment hold it.
 */
import * as native from "../../index.js";
import type { ActorBag } from "./bags.js";
import { fromRecord, unbridged } from "./errors.js";
import { keep, type NapiActorFactory } from "./factory.js";
import type { CallerKind } from "./hooks.js";
import { inspectorToken } from "./inspector-token.js";
import { onAbort, type Stop } from "./listen.js";
import {
  cancellable,
  type SessionHandle,
  type SessionListener,
  type Sessions,
} from "./sessions.js";
import type { Tickets } from "./tickets.js";

/** An actor by its name and key, created by the first call if `create` says so, or by its id. */
export type Target =
  | { readonly name: string; readonly key: readonly (string | number)[]; readonly create?: boolean }
  | { readonly id: string };

/** An actor's row of the directory. */
export interface ActorRow {
  readonly id: string;
  readonly name: string;
  readonly key: readonly (string | number)[];
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** An actor in a list. */
export interface ListedActor extends ActorRow {
  /** Whether a generation of it is live. */
  readonly awake: boolean;
}

/** What the host knows of one actor. */
export interface ActorReport extends ListedActor {
  /** Everything that keeps it awake. */
  readonly holds: readonly Hold[];
}

export interface ListOptions {
  readonly name?: string;
  readonly keyPrefix?: readonly (string | number)[];
  /** Only those after this `cursor` of an earlier list. */
  readonly after?: number;
  /** Default 100. */
  readonly limit?: number;
}

/** What an actor was busy with. */
export interface Hold {
  readonly what: string;
  readonly count: number;
}

export interface ShutdownReport {
  readonly drained: number;
  readonly notDrained: readonly {
    readonly name: string;
    readonly key: readonly (string | number)[];
    readonly actorId: string;
    readonly holds: readonly Hold[];
  }[];
}

/** What a copy of all actors has. */
export interface BackupReport {
  readonly actors: number;
  /** How many of them have a file of their own. */
  readonly files: number;
  /** How large it is. */
  readonly bytes: number;
}

/** Where to listen, and for whom. */
export interface ListenTarget {
  /** An address; without one requests come from a server of the author's. */
  readonly host?: string;
  /** 0 is any that is free. */
  readonly port: number;
  readonly token?: string | undefined;
  /** The only namespace that there is. Default `default`. */
  readonly namespace?: string;
  /** The pool that clients may name beside `default`; with it tools are answered that set up an endpoint. */
  readonly pool?: string;
  readonly origins?: readonly string[];
  readonly hosts?: readonly string[];
  /** Whether clients read what failed inside. */
  readonly exposeErrors?: boolean;
  readonly publicDir?: string;
  /** Whether pages may call without a token that come from any server of this machine. */
  readonly pagesOfThisMachine?: boolean;
  /** Whether the author's functions answer requests of dashboards themselves, those for files left out. */
  readonly inspectsInRuntime?: boolean;
  /** The number of an application. */
  readonly application?: number;
  /** Whether that and the files are all that there is. */
  readonly applicationOnly?: boolean;
}

/** What listens. */
export interface Listening {
  readonly listener: number;
  /** Null for one that listens nowhere itself. */
  readonly host: string | null;
  readonly port: number | null;
}

export type EnsureMode = "get" | "getOrCreate" | "create";

export interface OpenHostOptions {
  /** The folder; absent for a host in memory. */
  readonly path?: string;
  /** Whether other workers of this process may use the folder too; all have to say so. */
  readonly shared?: boolean;
  /** How long to wait for a folder that another process has, in milliseconds. */
  readonly lockTimeoutMs?: number;
}

type ManageOp = Parameters<typeof native.manage>[1];

/** What is known of a target between calls. */
interface Known {
  readonly json: string;
  bag: ActorBag | undefined;
}

export class HostHandle {
  /** The number by which Rust knows it. */
  readonly number: number;
  /** The same for all that were opened on one folder while it stayed open. */
  readonly home: number;
  readonly #tickets: Tickets;
  readonly #bags: ReadonlyMap<number, ActorBag>;
  readonly #sessions: Sessions;
  readonly #known = new WeakMap<Target, Known>();
  #ending: Promise<ShutdownReport> | undefined;

  constructor(
    number: number,
    home: number,
    sessions: Sessions,
    bags: ReadonlyMap<number, ActorBag>,
  ) {
    this.number = number;
    this.home = home;
    this.#sessions = sessions;
    this.#tickets = sessions.tickets;
    this.#bags = bags;
  }

  /**
   * Runs actors of `name` in this environment, in place of what ran them before: from their next
   * start on, or with `evict` at once, for which those that run fall asleep.
   */
  register(name: string, factory: NapiActorFactory, evict = false): void {
    plainly(() => native.register(this.number, name, factory, evict));
    keep(factory);
  }

  /**
   * Calls an action on the ordinary way. Encoded arguments in, encoded result out.
   * Keep one `Target` object per handle: what is known of it is kept by identity.
   */
  async submit(
    target: Target,
    action: string,
    args: Uint8Array,
    caller: CallerKind,
    options: { signal?: Stop | undefined } = {},
  ): Promise<Uint8Array> {
    const { signal } = options;
    if (signal?.aborted) throw signal.reason;
    const { json } = this.#knownOf(target);
    let unlisten: (() => void) | undefined;
    try {
      const bytes = await this.#tickets.wait((ticket) => {
        if (signal !== undefined) {
          unlisten = onAbort(signal, () => {
            if (this.#tickets.abandon(ticket, signal.reason)) native.cancel(this.number, ticket);
          });
        }
        plainly(() =>
          native.submit(this.number, json, action, args, caller, ticket, signal !== undefined),
        );
      });
      return bytes ?? EMPTY;
    } finally {
      unlisten?.();
    }
  }

  /** Calls an action over a connection of its own, which has ended when this resolves. */
  async submitConnected(
    target: Target,
    params: Uint8Array,
    action: string,
    args: Uint8Array,
    caller: CallerKind,
    signal: Stop | undefined,
  ): Promise<Uint8Array> {
    const { json } = this.#knownOf(target);
    const bytes = await cancellable(this.#tickets, this.number, signal, (ticket, may) => {
      const { number } = this;
      plainly(() =>
        native.submitConnected(number, json, params, action, args, caller, ticket, may),
      );
    });
    return bytes ?? EMPTY;
  }

  /** Connects a client, with encoded parameters; `listener` hears what becomes of it. */
  connect(
    target: Target,
    params: Uint8Array,
    hibernatable: boolean,
    listener: SessionListener,
  ): SessionHandle {
    const { json } = this.#knownOf(target);
    const opened = plainly(() => native.sessionOpen(this.number, json, params, hibernatable));
    return this.#sessions.opened(this.number, opened, listener);
  }

  /** The live generation of a target, if its author's side runs here. */
  live(target: Target): ActorBag | undefined {
    if (this.#ending !== undefined) return undefined;
    const known = this.#knownOf(target);
    const { bag } = known;
    if (bag !== undefined && bag.stopped === undefined) return bag;
    known.bag = this.#bags.get(native.live(this.number, known.json));
    return known.bag;
  }

  /** Finds or creates an actor without starting it. */
  async ensure(target: Target, mode: EnsureMode, input?: Uint8Array): Promise<ActorRow> {
    const { json } = this.#knownOf(target);
    const row = await this.#tickets.wait((ticket) => {
      plainly(() => native.ensure(this.number, json, mode, input ?? null, ticket));
    });
    return parse<ActorRow>(row);
  }

  list(options: ListOptions = {}): Promise<{ actors: ListedActor[]; cursor: number | null }> {
    return this.#manage("list", options);
  }

  /** What is known of an actor; null when there is none of this id. */
  info(id: string): Promise<ActorReport | null> {
    return this.#manage("info", { id });
  }

  /** Puts an actor to sleep and resolves when it does. */
  async sleep(id: string): Promise<void> {
    await this.#manage<null>("sleep", { id });
  }

  /** Destroys an actor; false when there is none. */
  destroy(target: Target): Promise<boolean> {
    return this.#manage("destroy", target);
  }

  /** Copies an actor into a file, which replaces one of its name only with `replace`. */
  async export(id: string, path: string, replace: boolean): Promise<void> {
    await this.#manage<null>("export", { id, path, replace });
  }

  /** Makes an actor from a copy of one. */
  import(
    path: string,
    target: { readonly name: string; readonly key: readonly (string | number)[] },
  ): Promise<ActorRow> {
    return this.#manage("import", { path, ...target });
  }

  /** Copies all actors into a folder that is missing or empty. */
  backup(path: string): Promise<BackupReport> {
    return this.#manage("backup", { path });
  }

  /** Serves the actors, at an address of this machine or for another server, until {@link HostHandle.unlisten}. */
  listen(options: ListenTarget): Promise<Listening> {
    return this.#manage("listen", { inspectorToken: inspectorToken(), ...options });
  }

  /** Ends what `listen` began; requests may take `graceMs` milliseconds more. */
  async unlisten(listener: number, graceMs: number): Promise<void> {
    await this.#manage<null>("unlisten", { listener, graceMs });
  }

  /**
   * Lets nothing more in through this handle, and all actors that only it could reach come to rest, for
   * `graceMs` at most. A second call joins the first.
   */
  shutdown(graceMs: number): Promise<ShutdownReport> {
    this.#ending ??= this.#end(graceMs);
    return this.#ending;
  }

  #end(graceMs: number): Promise<ShutdownReport> {
    return this.#manage<ShutdownReport>("shutdown", { graceMs });
  }

  async #manage<T>(op: ManageOp, args: object): Promise<T> {
    const json = JSON.stringify(args);
    const bytes = await this.#tickets.wait((ticket) => {
      plainly(() => native.manage(this.number, op, json, ticket));
    });
    return parse<T>(bytes);
  }

  #knownOf(target: Target): Known {
    let known = this.#known.get(target);
    if (known === undefined) {
      known = { json: JSON.stringify(target), bag: undefined };
      this.#known.set(target, known);
    }
    return known;
  }
}

const EMPTY = new Uint8Array(0);

/** What a native function throws, as a plain error. */
export function plainly<T>(body: () => T): T {
  try {
    return body();
  } catch (thrown) {
    throw unbridged(thrown);
  }
}

export function parse<T>(bytes: Uint8Array | null): T {
  if (bytes === null) {
    throw fromRecord({
      group: "core",
      code: "internal_error",
      message: "expected an answer, not nothing",
    });
  }
  return JSON.parse(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"),
  ) as T;
}
