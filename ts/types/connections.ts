/** Connections of an actor, and the contexts of their hooks, as types. */

import type { ActorContext, Caller } from "./context";
import type { AllActionsOf, AnyActorDefinition, TypesOf } from "./definition";
import type { SentEventArgs } from "./events";

/** One client of an actor. */
export interface Conn<Params = unknown, State = unknown, Events = unknown> {
  /** The id, which stays over sleeps of the actor. */
  readonly id: string;
  /** What the client passed, or what `connParamsSchema` made of it. */
  readonly params: Params;
  /**
   * What the actor keeps for this client. Changes at any depth are noticed. That of a hibernatable
   * connection is stored with the turn that changed it; of others it lives as long as they do.
   *
   * @throws `connection.state_not_enabled` when connections of the actor have none.
   */
  state: State;
  /** Whether it outlives a sleep of the actor. */
  readonly isHibernatable: boolean;
  /**
   * Sends an event to this client, whether it subscribed to it or not. It leaves when everything that
   * was changed before is durable, and not at all to a client that is gone.
   *
   * @throws `actor.validation_error` where the schema of the event refuses its payload.
   */
  send<K extends keyof Events & string>(name: K, ...args: SentEventArgs<Events[K]>): void;
  /** Disconnects the client, behind all that it was sent. Resolves when `onDisconnect` has ended. */
  disconnect(reason?: string): Promise<void>;
}

/** What contexts have of connections. */
export interface ConnectionsContext<Params, State, Events> {
  /**
   * The clients that are connected, by their ids, always as they are. They may be disconnected while one
   * goes through them.
   */
  readonly conns: ReadonlyMap<string, Conn<Params, State, Events>>;
  /**
   * Sends an event to all clients that subscribed to it. It leaves when everything that was changed
   * before is durable.
   *
   * @throws `actor.validation_error` where the schema of the event refuses its payload.
   */
  broadcast<K extends keyof Events & string>(name: K, ...args: SentEventArgs<Events[K]>): void;
}

/** Of `createConnState`: of the connections themselves it knows nothing yet. */
export interface CreateConnStateContext<
  State = unknown,
  _ConnParams = unknown,
  _ConnState = unknown,
  Vars = unknown,
  Input = unknown,
  Database = unknown,
  Events = unknown,
  Queues = unknown,
  Actions = never,
> extends ActorContext<State, unknown, unknown, Vars, Input, Database, Events, Queues, Actions> {
  /** How the client came; undefined within the process. */
  readonly request: Request | undefined;
}

/** Of `onConnect` and `onDisconnect`. */
export interface ConnContext<
  State = unknown,
  ConnParams = unknown,
  ConnState = unknown,
  Vars = unknown,
  Input = unknown,
  Database = unknown,
  Events = unknown,
  Queues = unknown,
  Actions = never,
> extends ActorContext<
    State,
    ConnParams,
    ConnState,
    Vars,
    Input,
    Database,
    Events,
    Queues,
    Actions
  > {
  /** The client. */
  readonly conn: Conn<ConnParams, ConnState, Events>;
  /** How the client came; undefined within the process, and in `onDisconnect`. */
  readonly request: Request | undefined;
}

/** Of `canSubscribe`. Its actor is not known where an event is declared. */
export interface SubscribeContext extends ActorContext {
  /** Where the client is: outside of the process, or in it. */
  readonly caller: Caller;
  /** The client. */
  // biome-ignore lint/suspicious/noExplicitAny: its types belong to the actor that has the event
  readonly conn: Conn<any, any, unknown>;
}

/** Of `onConnect` and `onDisconnect` of the given definition. */
export type ConnContextOf<D extends AnyActorDefinition> = ConnContext<
  TypesOf<D>["state"],
  TypesOf<D>["connParams"],
  TypesOf<D>["connState"],
  TypesOf<D>["vars"],
  TypesOf<D>["input"],
  TypesOf<D>["db"],
  TypesOf<D>["events"],
  TypesOf<D>["queues"],
  AllActionsOf<D>
>;

/** Of `createConnState` and `onBeforeConnect` of the given definition. */
export type CreateConnStateContextOf<D extends AnyActorDefinition> = CreateConnStateContext<
  TypesOf<D>["state"],
  unknown,
  unknown,
  TypesOf<D>["vars"],
  TypesOf<D>["input"],
  TypesOf<D>["db"],
  TypesOf<D>["events"],
  TypesOf<D>["queues"],
  AllActionsOf<D>
>;

/** A connection of the given definition. */
export type ConnOf<D extends AnyActorDefinition> = Conn<
  TypesOf<D>["connParams"],
  TypesOf<D>["connState"],
  TypesOf<D>["events"]
>;

export type {
  ConnContext as ConnectContext,
  ConnContext as DisconnectContext,
  ConnContext as WebSocketContext,
  ConnContextOf as ConnectContextOf,
  ConnContextOf as DisconnectContextOf,
  ConnContextOf as WebSocketContextOf,
  CreateConnStateContext as BeforeConnectContext,
  CreateConnStateContext as ConnInitContext,
  CreateConnStateContextOf as BeforeConnectContextOf,
  CreateConnStateContextOf as ConnInitContextOf,
};
