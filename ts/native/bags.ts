/**
 * What JavaScript knows of each running generation.
 *
 * Rust holds no JavaScript object: everything of an actor that is one is here, by
 * the generation's number, from its START to its STOPPED.
 */
import { setMaxListeners } from "node:events";
import type { ActorContext } from "../../index.js";
import * as native from "../../index.js";
import { Connections } from "./connections.js";
import {
  type ErrorActor,
  type ErrorRecord,
  fromRecord,
  type RivetError,
  withoutStack,
} from "./errors.js";
import type { Factory } from "./factory.js";
import { HeldOutputs, type Output } from "./gate.js";
import { OpenCalls } from "./open-calls.js";
import type { Tickets } from "./tickets.js";
import type { Turns } from "./turns.js";

/** Who an actor is. */
export interface ActorIdentity {
  readonly actorId: string;
  readonly name: string;
  readonly key: readonly (string | number)[];
  readonly region: string;
  readonly generation: number;
}

export type StopOutcome = "slept" | "destroyed" | "failed" | "broken";

/** What the methods of handles need of their environment. */
export interface Home {
  readonly environment: number;
  readonly turns: Turns;
  readonly tickets: Tickets;
}

/** One running generation. */
export class ActorBag {
  /** The environment that it belongs to. */
  readonly home: Home;
  readonly actor: number;
  readonly identity: ActorIdentity;
  readonly factory: Factory;
  /** Changed since the state was last handed over. Set by `changed`. */
  dirty = false;
  /** Rows were changed in this turn. Set by `wrote`. */
  wrote = false;
  /** Statements ran in this turn. Set by `usedSql`. */
  usesSql = false;
  /** How many statements and ends of transactions are not answered. Set by `sql`. */
  statements = 0;
  /** The state was handed over on request, and no commit has ended since. */
  handedOver = false;
  /** A save was asked for, and the state has not been handed over since. */
  asked = false;
  /** The last commit that this side began and that has not ended; 0 for none. */
  inFlight = 0;
  /** The last commit that is durable. */
  durable = 0;
  /** Whether `keepalive` holds the process for it. */
  holds = false;
  /** Outputs that wait for a commit or for their turn. */
  held: HeldOutputs | undefined;
  /** The last state was handed over: no later change can be stored. */
  sealed = false;
  /** Set by the last job. */
  stopped: { readonly outcome: StopOutcome; readonly error: RivetError } | undefined;
  /** The functions that have begun, or are about to, by call. */
  readonly open = new OpenCalls();
  /** What `createState` gave back, until it has been handed over. */
  firstState: Uint8Array | undefined;
  /** What the author's layer keeps for it. */
  extension: unknown;
  readonly #instance: (bag: ActorBag) => ActorContext | null;
  #context: ActorContext | undefined;
  #connections: Connections | undefined;
  #runtimeState: Record<string, unknown> | undefined;
  #abort: AbortController | undefined;
  #aborted: "sleep" | "destroy" | undefined;
  /** Signals that were asked for through each handle. */
  #followers: Map<object, AbortController[]> | undefined;
  /** Who is told when the generation has ended; most have nobody. */
  #ends: Set<(why: RivetError) => void> | undefined;

  constructor(
    home: Home,
    actor: number,
    identity: ActorIdentity,
    factory: Factory,
    instance: (bag: ActorBag) => ActorContext | null,
  ) {
    this.home = home;
    this.actor = actor;
    this.identity = identity;
    this.factory = factory;
    this.#instance = instance;
  }

  /** The contract's handle: one instance per generation, made at the first use. */
  get context(): ActorContext {
    if (this.#context === undefined) {
      const made = this.#instance(this);
      if (made === null) throw this.stoppedError();
      this.#context = made;
    }
    return this.#context;
  }

  /** The connections, by their ids. */
  get connections(): Connections {
    this.#connections ??= new Connections(this, this.home.environment);
    return this.#connections;
  }

  /** A state that a dashboard puts in the place of the actor's, until it is stored. */
  patched: Uint8Array | undefined;

  /** The encoded state as it was last saved or loaded; empty for none. */
  storedState(): Uint8Array {
    return native.storedState(this.actor) ?? this.context.state();
  }

  /** The contract's bag: one object for all handles on this generation. */
  get runtimeState(): Record<string, unknown> {
    this.#runtimeState ??= {};
    return this.#runtimeState;
  }

  clearRuntimeState(): void {
    this.#runtimeState = undefined;
  }

  /** Why the actor began to stop; undefined while it has not. */
  get abortReason(): "sleep" | "destroy" | undefined {
    return this.#aborted;
  }

  /** Fires when the actor begins to stop. */
  get abortSignal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      // Every call of the actor may listen at the same time.
      setMaxListeners(0, this.#abort.signal);
      if (this.#aborted !== undefined || this.stopped !== undefined) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  /** Whether outputs wait that have to leave before any other. */
  get holdsOutputs(): boolean {
    return this.held !== undefined && this.held.size > 0;
  }

  /** Keeps an output of a call in place until `commit` is durable. */
  hold(commit: number, output: Output): void {
    this.held ??= new HeldOutputs();
    this.held.hold(commit, output);
  }

  /** Gives back what holding outputs took, once none is held: most actors hold none most of the time. */
  dropEmptyHeld(): void {
    if (this.held?.size === 0) this.held = undefined;
  }

  /** Keeps the place of an answer that takes the ordinary way, until `ticket` has it. */
  keepPlace(ticket: number): void {
    if (this.stopped !== undefined) return;
    const gone = () => {
      this.held?.leavePlace(ticket, this.durable);
      this.dropEmptyHeld();
    };
    if (!this.home.tickets.whenSettled(ticket, gone)) return;
    this.held ??= new HeldOutputs();
    this.held.keepPlace(ticket);
  }

  /** Lets Rust say when an output of a call in place may leave. */
  ask(output: Output): void {
    let place = 0;
    const start = (ticket: number) => {
      place = ticket;
      if (!native.outputMayLeave(this.actor, ticket)) throw this.stoppedError();
    };
    this.home.tickets.wait(start).then(
      () => output.leave(),
      (error) => output.fail(error),
    );
    this.keepPlace(place);
  }

  /** The actor begins to stop. */
  abort(reason: "sleep" | "destroy"): void {
    this.#aborted ??= reason;
    this.#abort?.abort();
    const followers = [...(this.#followers?.values() ?? [])].flat();
    this.#followers = undefined;
    for (const follower of followers) follower.abort();
  }

  /** Has a signal fire when the actor begins to stop, unless `handle` is let go of before. */
  follow(handle: object, follower: AbortController): void {
    if (this.#aborted !== undefined || this.stopped !== undefined) {
      follower.abort();
      return;
    }
    this.#followers ??= new Map();
    const known = this.#followers.get(handle);
    if (known === undefined) this.#followers.set(handle, [follower]);
    else known.push(follower);
  }

  /** The invocation that had a handle to itself is over, and with it whatever listens to its signals. */
  letGo(handle: object): void {
    this.#followers?.delete(handle);
  }

  /** Has `told` called when the generation has ended. Returns what takes that back. */
  whenStopped(told: (why: RivetError) => void): () => void {
    if (this.stopped !== undefined) {
      told(this.stopped.error);
      return () => {};
    }
    this.#ends ??= new Set();
    this.#ends.add(told);
    return () => {
      this.#ends?.delete(told);
    };
  }

  /** The generation ended; what is open is told. */
  stop(outcome: StopOutcome, error: RivetError | undefined): void {
    // Where this is called from tells nobody anything.
    this.stopped = { outcome, error: error ?? withoutStack(this.#stopping()) };
    this.#abort?.abort();
    for (const call of this.open.inOrder()) call.stop(this.stopped.error);
    this.held?.fail(this.stopped.error);
    for (const told of this.#ends ?? []) told(this.stopped.error);
    this.#ends = undefined;
    // Handles that find no other generation keep this one: it must not keep the state.
    this.held = undefined;
    this.firstState = undefined;
    this.extension = undefined;
  }

  /** Why nothing more happens in this generation. */
  stoppedError(): RivetError {
    if (this.stopped !== undefined) return this.stopped.error;
    return fromRecord(this.#stopping());
  }

  #stopping(): ErrorRecord {
    return {
      group: "actor",
      code: "stopping",
      message: "actor is stopping",
      actor: this.specifier,
    };
  }

  /** The form that errors carry. */
  get specifier(): ErrorActor {
    const { actorId, generation, key } = this.identity;
    return { actorId, generation, key: displayKey(key) };
  }
}

/** A key for people, as the Rust side has it: no two look the same. */
function displayKey(key: ActorIdentity["key"]): string {
  if (key.length === 0) return "/";
  return key
    .map((part) => (part === "" ? "\\0" : String(part).replace(/[\\/]/g, "\\$&")))
    .join("/");
}
