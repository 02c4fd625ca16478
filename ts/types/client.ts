/** Clients and handles, as types. */

import type { ActionArgs, ActionAt, ActionName, ActionResult, Calls } from "./actions";
import type { ActorConn, ConnectArgs, ParamsOptions } from "./connected";
import type { AnyActorDefinition, AnyRegistry, DefinitionsOf, TypesOf } from "./definition";
import type { HandleSend, TypesOfQueues } from "./queue";

/** What tells the actors of one name apart. A bare string is a key of one part, none is `[]`. */
export type ActorKey = string | readonly string[];

/** Options of `get` and `getForId`. */
export interface GetOptions<P = unknown> extends ParamsOptions<P> {
  /** Gives up every call of the handle when it fires. */
  signal?: AbortSignal | undefined;
}

/** What a creator passes to an actor: required when the actor needs it. */
type InputAs<Name extends string, I> = unknown extends I
  ? { [K in Name]?: unknown }
  : undefined extends I
    ? { [K in Name]?: I }
    : { [K in Name]: I };

/** Options of `getOrCreate`. */
export type GetOrCreateOptions<I = unknown, P = unknown> = GetOptions<P> &
  InputAs<"createWithInput", I>;

/** Options of `create`. */
export type CreateOptions<I = unknown, P = unknown> = GetOptions<P> & InputAs<"input", I>;

/** Key and options, where the options may be left out unless the actor needs an input. */
type KeyAnd<I, O> = unknown extends I
  ? [key?: ActorKey, options?: O]
  : undefined extends I
    ? [key?: ActorKey, options?: O]
    : [key: ActorKey | undefined, options: O];

/** Reaches the actors of one name. */
export interface ActorAccessor<D extends AnyActorDefinition> {
  /** The actor of the key, which must exist when it is called. */
  get(key?: ActorKey, options?: GetOptions<TypesOf<D>["sentParams"]>): ActorHandle<D>;
  /** The actor of the key; the first call creates it. */
  getOrCreate(
    ...args: KeyAnd<
      TypesOf<D>["input"],
      GetOrCreateOptions<TypesOf<D>["input"], TypesOf<D>["sentParams"]>
    >
  ): ActorHandle<D>;
  /** The actor of the id. */
  getForId(actorId: string, options?: GetOptions<TypesOf<D>["sentParams"]>): ActorHandle<D>;
  /**
   * Creates the actor of the key. It is started by its first call, which rejects with what `createState`
   * and the other hooks of its start throw.
   *
   * @throws rejects with `actor.already_exists`, and with `actor.validation_error` where `inputSchema`
   * refuses the input.
   */
  create(
    ...args: KeyAnd<
      TypesOf<D>["input"],
      CreateOptions<TypesOf<D>["input"], TypesOf<D>["sentParams"]>
    >
  ): Promise<ActorHandle<D>>;
}

/** A call by name. */
export interface ActionCall<A, N extends string> {
  /** The action, groups joined by dots. */
  name: N;
  /** Its arguments. */
  args: ActionArgs<ActionAt<A, N>>;
  /** Gives the call up when it fires. */
  signal?: AbortSignal | undefined;
}

/** Members of every handle. */
export interface HandleMembers<A, Q = unknown> {
  /** Calls an action by name. */
  action<N extends ActionName<A>>(call: ActionCall<A, N>): ActionResult<ActionAt<A, N>>;
  /** Sends a message to a queue of the actor. */
  readonly send: HandleSend<TypesOfQueues<Q>>;
  /** The id of the actor, which is created when the handle says so. It is not started. */
  resolve(): Promise<string>;
}

/** What a handle has of connections. */
export interface Connects<D extends AnyActorDefinition> {
  /** Connects to the actor at once, and again whenever the connection is lost. */
  connect(...args: ConnectArgs<TypesOf<D>["sentParams"]>): ActorConn<D>;
}

/** Calls one actor. It stays valid while the actor sleeps, wakes and is created again. */
export type ActorHandle<D extends AnyActorDefinition> = HandleMembers<
  TypesOf<D>["actions"],
  TypesOf<D>["queues"]
> &
  Connects<D> &
  Calls<TypesOf<D>["actions"]>;

/**
 * A handle of an actor on itself, by which its internal actions are called too. Anywhere else those reject
 * with `actor.action_not_found`.
 */
export type SelfHandleOf<D extends AnyActorDefinition> = ActorHandle<D> &
  Calls<TypesOf<D>["internalActions"]>;

/** What a client offers beside its accessors. */
export interface ClientRaw<R extends AnyRegistry> {
  /** See {@link ActorAccessor.get}. */
  get<N extends keyof DefinitionsOf<R> & string>(
    name: N,
    ...args: Parameters<ActorAccessor<DefinitionsOf<R>[N]>["get"]>
  ): ActorHandle<DefinitionsOf<R>[N]>;
  /** See {@link ActorAccessor.getOrCreate}. */
  getOrCreate<N extends keyof DefinitionsOf<R> & string>(
    name: N,
    ...args: Parameters<ActorAccessor<DefinitionsOf<R>[N]>["getOrCreate"]>
  ): ActorHandle<DefinitionsOf<R>[N]>;
  /** See {@link ActorAccessor.getForId}. */
  getForId<N extends keyof DefinitionsOf<R> & string>(
    name: N,
    actorId: string,
    options?: GetOptions<TypesOf<DefinitionsOf<R>[N]>["sentParams"]>,
  ): ActorHandle<DefinitionsOf<R>[N]>;
  /** See {@link ActorAccessor.create}. */
  create<N extends keyof DefinitionsOf<R> & string>(
    name: N,
    ...args: Parameters<ActorAccessor<DefinitionsOf<R>[N]>["create"]>
  ): Promise<ActorHandle<DefinitionsOf<R>[N]>>;
  /** Ends the use of the client. Calls on their way end as if nothing had happened. */
  dispose(): Promise<void>;
}

/** Calls the actors of a registry. */
export type Client<R extends AnyRegistry> = ClientRaw<R> & {
  readonly [N in keyof DefinitionsOf<R>]: ActorAccessor<DefinitionsOf<R>[N]>;
};
