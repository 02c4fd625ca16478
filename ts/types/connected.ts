/** Connections as their clients have them, as types. */

import type { RivetError } from "../errors";
import type { ActionAt, ActionName, ActionResult, Calls } from "./actions";
import type { ActionCall } from "./client";
import type { AnyActorDefinition, TypesOf } from "./definition";
import type { ReceivedEventArgs } from "./events";
import type { HandleSend, TypesOfQueues } from "./queue";

/**
 * `"connecting"` until the actor took the connection, `"connected"` until it is lost, `"disconnected"`
 * until the next attempt; `"idle"` after `dispose()`, and once the actor refused the first attempt.
 */
export type ActorConnStatus = "idle" | "connecting" | "connected" | "disconnected";

/** Members of every connection. */
export interface ConnMembers<A, Q = unknown, E = unknown> {
  /** Calls an action by name. */
  action<N extends ActionName<A>>(call: ActionCall<A, N>): ActionResult<ActionAt<A, N>>;
  /** Sends a message to a queue of the actor. */
  readonly send: HandleSend<TypesOfQueues<Q>>;
  /** Hears an event whenever it comes; returns what ends that. */
  on<K extends keyof E & string>(
    name: K,
    listener: (...args: ReceivedEventArgs<E[K]>) => void,
  ): () => void;
  /** Hears an event once; returns what ends the wait for it. */
  once<K extends keyof E & string>(
    name: K,
    listener: (...args: ReceivedEventArgs<E[K]>) => void,
  ): () => void;
  /** Told whenever the actor took the connection, the first time and after each loss. */
  onOpen(listener: () => void): () => void;
  /** Told whenever an open connection is lost or disposed. */
  onClose(listener: () => void): () => void;
  /** Told why an attempt failed or a connection was lost. */
  onError(listener: (error: RivetError) => void): () => void;
  /** Told of each change of {@link ConnMembers.connStatus}. */
  onStatusChange(listener: (status: ActorConnStatus) => void): () => void;
  /** How it is. */
  readonly connStatus: ActorConnStatus;
  /** Whether {@link ConnMembers.connStatus} is `"connected"`. */
  readonly isConnected: boolean;
  /** Resolves when the actor took the connection for the first time; rejects when it never will. */
  readonly ready: Promise<void>;
  /** The id of the actor; undefined before the connection is open for the first time. */
  readonly actorId: string | undefined;
  /** The id of the connection; undefined while it is not open. */
  readonly connId: string | undefined;
  /** Closes the connection. Calls that wait for it reject with `client.disposed`. */
  dispose(): Promise<void>;
}

/** A connection to one actor. An action of the name of a member is called by `action` alone. */
export type ActorConn<D extends AnyActorDefinition> = ConnMembers<
  TypesOf<D>["actions"],
  TypesOf<D>["queues"],
  TypesOf<D>["events"]
> &
  Omit<Calls<TypesOf<D>["actions"]>, keyof ConnMembers<unknown>>;

/** The arguments of `connect()`: the parameters, required where the actor needs them. */
export type ConnectArgs<P> = unknown extends P
  ? [params?: unknown]
  : undefined extends P
    ? [params?: P]
    : [params: P];

/** What a client passes to the hooks of a connection. */
export interface ParamsOptions<P = unknown> {
  /** With them each call has a connection of its own, and the hooks of connections run for it. */
  params?: P | undefined;
  /** Makes {@link ParamsOptions.params}, once for each call and each attempt to connect. */
  getParams?: (() => P | Promise<P>) | undefined;
}
