/**
 * `connect()`: a connection to an actor of this process, over its losses too.
 *
 * 1. Once connected it subscribes first and calls then: no event that a call causes is missed.
 * 2. Calls wait for the actor to accept the connection, in the order in which they were made. What was on
 *    its way when a connection was lost is answered by whoever took it, or rejected.
 * 3. An event of which the actor refuses to tell costs the connection, as it does remote clients, and is
 *    not asked for again.
 * 4. An open connection does not hold the process; a call over it does.
 */

import { throughBoundary } from "../actors/action";
import { decode, encode } from "../codec";
import type { Definition } from "../definition";
import { describe } from "../definition/keys";
import { invalidArgument, isRivetError, RivetError, readingArgument } from "../errors";
import { callerKind, clockwork, type Stop } from "../native-half";
import type { Messages } from "../queue";
import type { Awaited } from "../queue/circles";
import type { ActorConnStatus } from "../types";
import { awaited } from "./awaited";
import { Departures, mayLeave } from "./departures";
import { encodedParams, Link } from "./link";
import { Listeners } from "./listeners";
import { type CalledClass, type Callee, makeClass } from "./members";
import { checkUnmarked, either, type Origin, type Reach } from "./reach";

class Connection implements Callee {
  readonly #reach: Reach;
  readonly #link: Link;
  readonly #departures = new Departures();
  readonly #events = new Map<string, Listeners<unknown[]>>();
  /** Who waits to be connected. */
  #waiting: { resolve(): void; reject(error: unknown): void }[] = [];
  readonly #ready: Promise<void>;
  #settleReady!: { resolve(): void; reject(error: unknown): void };
  #isOpen = false;
  #over: RivetError | undefined;
  actorId: string | undefined;
  connId: string | undefined;
  readonly opens = new Listeners<[]>();
  readonly closes = new Listeners<[]>();
  readonly errors = new Listeners<[RivetError]>();
  readonly statuses = new Listeners<[ActorConnStatus]>();

  constructor(reach: Reach, params: () => Promise<Uint8Array>) {
    this.#reach = reach;
    this.#ready = new Promise((resolve, reject) => {
      this.#settleReady = { resolve, reject };
    });
    // Whoever does not look at it is told by `onError` and by the calls.
    this.#ready.catch(() => {});
    this.#link = new Link(reach, params, {
      status: (status) => {
        this.statuses.tell(status);
        // Whoever was just told may have ended it.
        if (status === "connected" && this.status === status) this.opens.tell();
      },
      opened: (connId, actorId) => this.#opened(connId, actorId),
      event: (name, args) => this.#heard(name, args),
      lost: (error) => this.#lost(error),
      over: (error) => this.#end(error),
    });
    void this.#link.start();
  }

  get status(): ActorConnStatus {
    return this.#link.status;
  }

  get ready(): Promise<void> {
    return this.#ready;
  }

  call(name: string, args: readonly unknown[], signal: Stop | undefined): Promise<unknown> {
    try {
      checkUnmarked(name);
      const origin = this.#reach.origin;
      const stop = either(signal, this.#reach.signal);
      if (stop?.aborted) return Promise.reject(stop.reason);
      const bytes = readingArgument(() => encode(args, "args"));
      const answer = awaited(this.#call(origin, name, bytes, stop), undefined);
      return origin.live === undefined ? answer : origin.live.waits(answer, origin.call);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  waiting(name: string): { party: Messages; awaited: Awaited } | undefined {
    return this.#reach.waiting(name);
  }

  on(name: unknown, run: unknown, isOnce: boolean): () => void {
    if (typeof name !== "string") {
      throw invalidArgument(`on() takes the name of an event, not ${describe(name)}`);
    }
    const listener = checked(run, isOnce ? "once" : "on");
    let listeners = this.#events.get(name);
    if (listeners === undefined) {
      const made = new Listeners<unknown[]>(() => {
        if (this.#events.get(name) === made) this.#events.delete(name);
        void this.#link.session?.subscribe(name, false).catch(() => {});
      });
      listeners = made;
      this.#events.set(name, made);
      this.#subscribe(name);
    }
    return listeners.add(listener, isOnce);
  }

  dispose(): void {
    if (this.#over !== undefined) return;
    this.#link.end();
    this.#end(new RivetError("client", "disposed", "the connection was disposed"));
  }

  #call(origin: Origin, name: string, args: Uint8Array, stop: Stop | undefined): Promise<unknown> {
    const caller = callerKind(origin.live === undefined ? "local" : "actor");
    const gate = origin.live && mayLeave(origin.live, origin.call);
    const { session } = this.#link;
    if (session !== undefined && gate === undefined && this.#departures.none) {
      return session.call(name, args, caller, stop).then(decode, crossed);
    }
    return this.#departures.depart(stop, async () => {
      await gate;
      await this.#connected();
      return ({ resolve, reject }) => {
        const leave = (): void => {
          const { session } = this.#link;
          // It was lost since, and nothing had left: it waits for the next.
          if (session === undefined) this.#connected().then(leave, reject);
          else session.call(name, args, caller, stop).then(decode, crossed).then(resolve, reject);
        };
        leave();
      };
    });
  }

  /** Resolves once there is a session. */
  #connected(): Promise<void> {
    if (this.#over !== undefined) return Promise.reject(this.#over);
    if (this.#link.session !== undefined) return Promise.resolve();
    // Between two attempts nothing else holds the process.
    const release = clockwork.hold();
    const connected = new Promise<void>((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
    return connected.finally(release);
  }

  #opened(connId: string, actorId: string): void {
    this.connId = connId;
    this.actorId = actorId;
    this.#isOpen = true;
    for (const name of this.#events.keys()) this.#subscribe(name);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { resolve } of waiting) resolve();
    this.#settleReady.resolve();
  }

  #subscribe(name: string): void {
    const { session } = this.#link;
    session?.subscribe(name, true).catch((error: unknown) => {
      // Of a session that is over there is nothing to tell.
      if (this.#link.session !== session) return;
      this.#events.delete(name);
      this.#link.renew(error as RivetError);
    });
  }

  #heard(name: string, bytes: Uint8Array): void {
    const listeners = this.#events.get(name);
    if (listeners === undefined) return;
    const args = decode(bytes);
    listeners.tell(...(Array.isArray(args) ? args : [args]));
    listeners.settle();
  }

  #lost(error: RivetError): void {
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    this.connId = undefined;
    this.errors.tell(error);
    if (wasOpen) this.closes.tell();
  }

  #end(error: RivetError): void {
    this.#over = error;
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    this.connId = undefined;
    this.#events.clear();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { reject } of waiting) reject(error);
    this.#settleReady.reject(error);
    if (wasOpen) this.closes.tell();
  }
}

/** What the caller gets of an error that crossed. */
function crossed(error: unknown): never {
  throw throughBoundary(error);
}

const classes = new WeakMap<Definition, CalledClass>();
let unknownClass: CalledClass | undefined;

/** Connects to what a handle reaches; `given` are the arguments of `connect()`. */
export function makeConnection(
  reach: Reach,
  definition: Definition | undefined,
  given: unknown[],
): object {
  const params = given[0] === undefined ? reach.params : fixed(given[0]);
  const connection = new Connection(reach, params ?? fixed(undefined));
  if (definition === undefined) {
    unknownClass ??= makeConnClass([]);
    return new unknownClass(connection);
  }
  let made = classes.get(definition);
  if (made === undefined) {
    made = makeConnClass([...definition.actions.keys()]);
    classes.set(definition, made);
  }
  return new made(connection);
}

/** Parameters that are the same for each attempt. */
export function fixed(params: unknown): () => Promise<Uint8Array> {
  const bytes = encodedParams(params);
  return () => Promise.resolve(bytes);
}

/** Parameters that `make` makes for each attempt. */
export function made(make: () => unknown): () => Promise<Uint8Array> {
  return async () => {
    try {
      return encodedParams(await make());
    } catch (error) {
      if (isRivetError(error) && error.group === "client") throw error;
      throw new RivetError("client", "get_params_failed", "getParams of the handle failed", {
        cause: error,
      });
    }
  };
}

function makeConnClass(names: readonly string[]): CalledClass {
  return makeClass("ActorConn", names, (member) => {
    const add = (name: string, make: (at: Connection) => unknown): void => {
      member(name, (callee) => make(callee as Connection));
    };
    const read = (name: string, get: (at: Connection) => unknown): void => {
      member(name, (callee) => get(callee as Connection), false);
    };
    add("on", (at) => (name: unknown, run: unknown) => at.on(name, run, false));
    add("once", (at) => (name: unknown, run: unknown) => at.on(name, run, true));
    add("onOpen", (at) => (run: unknown) => at.opens.add(checked(run, "onOpen")));
    add("onClose", (at) => (run: unknown) => at.closes.add(checked(run, "onClose")));
    add("onError", (at) => (run: unknown) => at.errors.add(checked(run, "onError")));
    add("onStatusChange", (at) => (run: unknown) => {
      return at.statuses.add(checked(run, "onStatusChange"));
    });
    add("dispose", (at) => async () => at.dispose());
    read("connStatus", (at) => at.status);
    read("isConnected", (at) => at.status === "connected");
    read("ready", (at) => at.ready);
    read("actorId", (at) => at.actorId);
    read("connId", (at) => at.connId);
  });
}

function checked(run: unknown, method: string): (...args: unknown[]) => unknown {
  if (typeof run === "function") return run as (...args: unknown[]) => unknown;
  throw invalidArgument(`${method}() takes a function, not ${describe(run)}`);
}
