/**
 * What the contract's `ConnHandle` has beyond Rust: promises, and one instance of each connection of
 * a generation.
 *
 * 1. An instance is kept by nobody but who uses it: Rust has all that it stands for. So a connection
 *    that nobody asks about costs nothing here, and there is no word of its end to wait for.
 * 2. A state that is set is committed with the turn, where answers wait for changes.
 */
import {
  ActorContext,
  ConnHandle,
  connConnect,
  connDisconnect,
  connection,
  connectionOfCall,
  connectionOfHook,
} from "../../index.js";
import type { ActorBag } from "./bags.js";
import { toBridge } from "./errors.js";
import { bagOf, belongsTo, wrote } from "./owner.js";

/** A request as payloads and the contract's callers have it. */
export interface ConnectionRequest {
  readonly method: string;
  /** The path and the query. */
  readonly uri: string;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

declare module "../../index.js" {
  interface ActorContext {
    /** Connects a client that can be told nothing; resolves with it once it is accepted. */
    connectConn(params: Uint8Array, request?: ConnectionRequest | null): Promise<ConnHandle>;
    /** Disconnects the client of the id, if there is one. */
    disconnectConn(id: string): Promise<void>;
    /** Disconnects all clients that `which` picks, which is asked as the contract's callbacks are. */
    disconnectConns(
      which: (error: null, picked: { conn: ConnHandle }) => boolean | Promise<boolean>,
    ): Promise<void>;
  }
  interface ConnHandle {
    /** Closes the socket behind everything that was sent, and resolves when `onDisconnect` has ended. */
    disconnect(reason?: string | null): Promise<void>;
  }
}

/** The instances of a generation. */
export class Connections {
  readonly #bag: ActorBag;
  readonly #environment: number;
  readonly #known = new Map<string, WeakRef<ConnHandle>>();
  /** How many are known when those are next looked through that nobody uses any more. */
  #sweepAt = 16;

  constructor(bag: ActorBag, environment: number) {
    this.#bag = bag;
    this.#environment = environment;
  }

  /** The connection of a hook that is not answered. */
  ofHook(id: string, ticket: number): ConnHandle {
    const make = () => connectionOfHook(this.#environment, this.#bag.actor, ticket);
    return this.#find(id, make) ?? this.#gone(id);
  }

  /** The connection of a call that is not answered. */
  ofCall(id: string, call: number): ConnHandle {
    const make = () => connectionOfCall(this.#environment, this.#bag.actor, call);
    return this.#find(id, make) ?? this.#gone(id);
  }

  /** A connection of the actor; undefined when it has none of this id. */
  get(id: string): ConnHandle | undefined {
    const known = this.#known.get(id)?.deref();
    if (known !== undefined) return known.isVisible() ? known : undefined;
    return this.#find(id, () => connection(this.#environment, this.#bag.actor, id));
  }

  /** One instance for each connection (1): the known one in the place of a new one. */
  same(made: ConnHandle): ConnHandle {
    return this.#find(made.id(), () => made) as ConnHandle;
  }

  /** Those that somebody uses. */
  *known(): Generator<ConnHandle> {
    for (const kept of [...this.#known.values()]) {
      const known = kept.deref();
      if (known !== undefined) yield known;
    }
  }

  #find(id: string, make: () => ConnHandle | null): ConnHandle | undefined {
    const known = this.#known.get(id)?.deref();
    if (known !== undefined) return known;
    const made = make();
    if (made === null) return undefined;
    if (this.#known.size >= this.#sweepAt) this.#sweep();
    this.#known.set(id, new WeakRef(made));
    return belongsTo(made, this.#bag);
  }

  #sweep(): void {
    for (const [id, kept] of this.#known) if (kept.deref() === undefined) this.#known.delete(id);
    this.#sweepAt = Math.max(16, 2 * this.#known.size);
  }

  #gone(id: string): never {
    throw new Error(`connection ${id} is not that of what was taken`);
  }
}

const methods = {
  async disconnect(this: ConnHandle, reason?: string | null): Promise<void> {
    const start = (ticket: number) => connDisconnect(this, reason ?? "", ticket);
    await bagOf(this).home.tickets.wait(start, { bridged: true });
  },
};

const contextMethods = {
  async connectConn(
    this: ActorContext,
    params: Uint8Array,
    request?: ConnectionRequest | null,
  ): Promise<ConnHandle> {
    const bag = bagOf(this);
    const { method, uri, headers } = request ?? {};
    const head = request == null ? null : JSON.stringify({ method, uri, headers });
    const start = (ticket: number) => connConnect(this, params, head, ticket);
    const id = await bag.home.tickets.wait(start, { bridged: true });
    const made = bag.connections.get(Buffer.from(id ?? []).toString());
    if (made !== undefined) return made;
    throw toBridge({ group: "connection", code: "not_found", message: "the connection has ended" });
  },
  async disconnectConn(this: ActorContext, id: string): Promise<void> {
    await bagOf(this).connections.get(id)?.disconnect();
  },
  async disconnectConns(
    this: ActorContext,
    which: (error: null, picked: { conn: ConnHandle }) => boolean | Promise<boolean>,
  ): Promise<void> {
    const end = async (conn: ConnHandle): Promise<void> => {
      if (await which(null, { conn })) await conn.disconnect();
    };
    await Promise.all(this.conns().map(end));
  },
};

// Once, also where this module is loaded twice in one environment.
if (!Object.hasOwn(ConnHandle.prototype, "disconnect")) {
  Object.assign(ConnHandle.prototype, methods);
  Object.assign(ActorContext.prototype, contextMethods);
  const setNative = ConnHandle.prototype.setState;
  ConnHandle.prototype.setState = function setState(state: Uint8Array): void {
    setNative.call(this, state);
    if (this.isHibernatable()) stored(this);
  };
  const connsNative = ActorContext.prototype.conns;
  ActorContext.prototype.conns = function conns(): ConnHandle[] {
    const { connections } = bagOf(this);
    return connsNative.call(this).map((made) => connections.same(made));
  };
  const dirtyNative = ActorContext.prototype.dirtyHibernatableConns;
  ActorContext.prototype.dirtyHibernatableConns = function dirty(): ConnHandle[] {
    const { connections } = bagOf(this);
    return dirtyNative.call(this).map((made) => connections.same(made));
  };
  const removeNative = ActorContext.prototype.queueHibernationRemoval;
  ActorContext.prototype.queueHibernationRemoval = function remove(id: string): void {
    removeNative.call(this, id);
    stored(this);
  };
}

/** See (2). Otherwise Rust asks for a save by itself. */
function stored(object: object): void {
  if (bagOf(object).factory.gated) wrote(object);
}
