/**
 * A connection to an actor: calls and events over one socket, over its losses too.
 *
 * 1. Once connected, it subscribes first and calls then: an event that a call causes is not missed.
 * 2. A call that was sent before the socket was lost rejects, as it may have been carried out; one that
 *    was not sent yet waits for the next socket.
 */

import { Listeners } from "../calls/listeners";
import { type RivetError, readingArgument } from "../errors";
import { onAbort } from "../native/listen";
import type { ActorConnStatus } from "../types/connected";
import { actionFrame, type Encoded, type Frame, subscriptionFrame } from "./encoding";
import { clientError, errorOf } from "./errors";
import { Link } from "./link";
import type { RemoteActor } from "./remote";

interface PendingCall {
  readonly frame: Encoded;
  readonly resolve: (output: unknown) => void;
  readonly reject: (error: unknown) => void;
  sent: boolean;
}

export class Connection {
  readonly #actor: RemoteActor;
  readonly #link: Link;
  readonly #calls = new Map<bigint, PendingCall>();
  readonly #events = new Map<string, Listeners<unknown[]>>();
  readonly #ready: Promise<void>;
  #settleReady: { resolve(): void; reject(error: unknown): void } | undefined;
  #nextId = 0n;
  /** Why there is no connection any more, nor ever again. */
  #over: RivetError | undefined;
  actorId: string | undefined;
  connId: string | undefined;
  readonly opens = new Listeners<[]>();
  readonly closes = new Listeners<[]>();
  readonly errors = new Listeners<[RivetError]>();
  readonly statuses = new Listeners<[ActorConnStatus]>();

  constructor(actor: RemoteActor, params: unknown) {
    this.#actor = actor;
    this.#ready = new Promise((resolve, reject) => {
      this.#settleReady = { resolve, reject };
    });
    // Whoever does not look at it is told by `onError` and by their calls.
    this.#ready.catch(() => {});
    this.#link = new Link(actor, params, {
      status: (status) => {
        this.statuses.tell(status);
        // Whoever was just told may have ended it.
        if (status === "connected" && this.status === status) this.opens.tell();
      },
      opened: (actorId, connId) => this.#opened(actorId, connId),
      frame: (frame) => this.#hear(frame),
      lost: (error, refused) => this.#lost(error, refused),
      over: (error) => this.#end(error),
    });
  }

  get status(): ActorConnStatus {
    return this.#link.status;
  }

  get ready(): Promise<void> {
    return this.#ready;
  }

  start(): void {
    void this.#link.start();
  }

  call(name: string, args: readonly unknown[], signal?: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#over !== undefined) throw this.#over;
      signal?.throwIfAborted();
      const id = this.#nextId;
      this.#nextId += 1n;
      const frame = readingArgument(() => actionFrame(this.#actor.encoding, { id, name, args }));
      const heard =
        signal &&
        onAbort(signal, () => {
          this.#calls.delete(id);
          reject(signal.reason);
        });
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T): void => {
          heard?.();
          this.#calls.delete(id);
          settle(value);
        };
      const call = { frame, resolve: settled(resolve), reject: settled(reject), sent: false };
      this.#calls.set(id, call);
      if (this.status === "connected") this.#send(call);
    });
  }

  on(name: string, listener: (...args: unknown[]) => void): () => void {
    const listeners = this.#events.get(name) ?? new Listeners<unknown[]>();
    const isFirst = listeners.size === 0;
    this.#events.set(name, listeners);
    const remove = listeners.add(listener);
    if (isFirst) this.#subscribe(name, true);
    return () => {
      const before = listeners.size;
      remove();
      if (before === 0 || listeners.size > 0) return;
      this.#events.delete(name);
      this.#subscribe(name, false);
    };
  }

  once(name: string, listener: (...args: unknown[]) => void): () => void {
    const remove = this.on(name, (...args) => {
      remove();
      listener(...args);
    });
    return remove;
  }

  dispose(): void {
    if (this.#over !== undefined) return;
    const wasOpen = this.status === "connected";
    this.#link.end();
    this.#end(clientError("disposed", "the connection was disposed"));
    if (wasOpen) this.closes.tell();
  }

  #send(call: PendingCall): void {
    call.sent = true;
    this.#link.send(call.frame);
  }

  #subscribe(name: string, subscribe: boolean): void {
    if (this.status !== "connected") return;
    this.#link.send(subscriptionFrame(this.#actor.encoding, name, subscribe));
  }

  #opened(actorId: string, connId: string): void {
    this.actorId = actorId;
    this.connId = connId;
    for (const name of this.#events.keys()) this.#subscribe(name, true);
    for (const call of this.#calls.values()) if (!call.sent) this.#send(call);
    this.#settleReady?.resolve();
  }

  #hear({ tag, val }: Frame): void {
    if (tag === "Event") {
      const args = Array.isArray(val.args) ? val.args : [val.args];
      this.#events.get(String(val.name))?.tell(...args);
    } else if (tag === "ActionResponse") {
      this.#calls.get(idOf(val.id))?.resolve(val.output);
    } else if (tag === "Error") {
      this.#calls.get(idOf(val.actionId))?.reject(errorOf(val));
    }
  }

  #lost(error: RivetError, refused: boolean): void {
    const wasOpen = this.connId !== undefined;
    this.connId = undefined;
    // The actor refuses this event: asked again it would close the next connection, too.
    const event = (error.metadata as { event?: unknown } | undefined)?.event;
    if (typeof event === "string") this.#events.delete(event);
    for (const call of [...this.#calls.values()]) {
      if (call.sent || refused) call.reject(error);
    }
    this.errors.tell(error);
    if (wasOpen) this.closes.tell();
  }

  #end(error: RivetError): void {
    this.#over = error;
    this.connId = undefined;
    for (const call of [...this.#calls.values()]) call.reject(error);
    this.#events.clear();
    this.#settleReady?.reject(error);
  }
}

/** An id as it was sent. A number is one, too: a server may write ids as such. */
function idOf(id: unknown): bigint {
  return typeof id === "number" ? BigInt(Math.trunc(id)) : (id as bigint);
}
