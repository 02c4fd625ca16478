/** Clients over the network, as types: those of a client in the process, and what only a network has. */

import type {
  ActorAccessor,
  ActorHandle,
  AnyActorDefinition,
  AnyRegistry,
  DefinitionsOf,
} from "../types";
import type { PlatformWebSocket } from "./socket";

/** Members of a handle that need a network. */
export interface RemoteMembers {
  /** Asks `onRequest` of the actor; of a URL path and query count. */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Opens a socket to `onWebSocket` of the actor. */
  webSocket(path?: string): Promise<PlatformWebSocket>;
  /** Where the actor is. */
  getGatewayUrl(): Promise<string>;
}

/** Calls one actor over the network. It stays valid while the actor sleeps, wakes and is created again. */
export type RemoteHandle<D extends AnyActorDefinition> = ActorHandle<D> & RemoteMembers;

/** Reaches the actors of one name. */
export interface RemoteAccessor<D extends AnyActorDefinition> {
  /** See {@link ActorAccessor.get}. */
  get(...args: Parameters<ActorAccessor<D>["get"]>): RemoteHandle<D>;
  /** See {@link ActorAccessor.getOrCreate}. */
  getOrCreate(...args: Parameters<ActorAccessor<D>["getOrCreate"]>): RemoteHandle<D>;
  /** See {@link ActorAccessor.getForId}. */
  getForId(...args: Parameters<ActorAccessor<D>["getForId"]>): RemoteHandle<D>;
  /**
   * See {@link ActorAccessor.create}.
   *
   * @throws rejects with `actor.duplicate_key` where the key is taken
   */
  create(...args: Parameters<ActorAccessor<D>["create"]>): Promise<RemoteHandle<D>>;
}

type Accessors<R extends AnyRegistry> = {
  readonly [N in keyof DefinitionsOf<R>]: RemoteAccessor<DefinitionsOf<R>[N]>;
};

/** A method of an accessor with the name of the actor before its arguments. */
type Named<R extends AnyRegistry, Method extends keyof RemoteAccessor<AnyActorDefinition>> = <
  N extends keyof DefinitionsOf<R> & string,
>(
  name: N,
  ...args: Parameters<RemoteAccessor<DefinitionsOf<R>[N]>[Method]>
) => ReturnType<RemoteAccessor<DefinitionsOf<R>[N]>[Method]>;

/** What a client offers beside its accessors. */
export interface RemoteClientRaw<R extends AnyRegistry> {
  /** See {@link ActorAccessor.get}. */
  get: Named<R, "get">;
  /** See {@link ActorAccessor.getOrCreate}. */
  getOrCreate: Named<R, "getOrCreate">;
  /** See {@link ActorAccessor.getForId}. */
  getForId: Named<R, "getForId">;
  /** See {@link RemoteAccessor.create}. */
  create: Named<R, "create">;
  /** Closes all connections. Calls on their way reject with `client.disposed`. */
  dispose(): Promise<void>;
}

/** Calls the actors of a registry over the network. */
export type RemoteClient<R extends AnyRegistry> = RemoteClientRaw<R> & Accessors<R>;
