/**
 * Running the author's functions for jobs that were taken: hooks, `run`, and the encoding of
 * state. Each job is answered exactly once.
 */
import type { ActorContext, ConnHandle, JsStateDelta } from "../../index.js";
import type { ActorBag, Home } from "./bags.js";
import type { ConnectionRequest } from "./connections.js";
import { bytesOf, deltaOf, hasConnections } from "./delta.js";
import type { Entry } from "./entries.js";
import { encodeRecord, recordOf } from "./errors.js";
import type { Callback } from "./factory.js";
import { invokedOver } from "./invocation.js";
import { whenSettled } from "./settle.js";
import { BROKEN } from "./turns.js";

/** What hooks need of the Rust side. */
export interface AnswerPort {
  complete(actor: number, ticket: number, status: number, bytes?: Uint8Array | null): boolean;
  renewCall(actor: number, call: number): boolean;
  finishCall(actor: number, call: number, status: number, bytes?: Uint8Array | null): boolean;
  completeSave(actor: number, ticket: number, delta: JsStateDelta): boolean;
}

/** What hooks work with. */
export interface HookHost extends Home {
  readonly native: AnswerPort;
}

/** What a save stores that is more than the state. */
class WholeDelta {
  constructor(readonly delta: JsStateDelta) {}
}

/** How much more than a call in place a job costs. */
export const JOB_WEIGHT = 8;

/** The function of each hook, by the label that the Rust side gives it. */
const HOOKS: Readonly<Record<string, string>> = {
  on_migrate: "onMigrate",
  create_state: "createState",
  on_create: "onCreate",
  create_vars: "createVars",
  on_wake: "onWake",
  on_before_actor_start: "onBeforeActorStart",
  on_sleep: "onSleep",
  on_destroy: "onDestroy",
  on_before_connect: "onBeforeConnect",
  create_conn_state: "createConnState",
  on_connect: "onConnect",
  on_disconnect: "onDisconnectFinal",
  on_before_subscribe: "onBeforeSubscribe",
};

/** The earlier names of some, under which they may be handed over as well. */
const EARLIER: Readonly<Record<string, string>> = { onDisconnectFinal: "onDisconnect" };

/** What `run` asks for with `false`: that the moment for which it was woken comes once more. */
const AGAIN = new Uint8Array(1);

/** Those of the end, which nobody waits for. */
const ENDS: readonly string[] = ["onSleep", "onDestroy"];

/** The payload of a hook. `input` is null where the creator passed none. */
export class HookPayload {
  readonly bag: ActorBag;
  readonly input: Uint8Array | null;
  readonly isNew: boolean;

  constructor(bag: ActorBag, input: Uint8Array | null, isNew: boolean) {
    this.bag = bag;
    this.input = input;
    this.isNew = isNew;
  }

  /** Made when it is first looked at, and then kept by the actor. */
  get ctx(): ActorContext {
    return this.bag.context;
  }
}

/** The payload of a hook of a connection. */
export class ConnectionPayload {
  readonly bag: ActorBag;
  readonly conn: ConnHandle;
  /** Whether the client may hear this event; null for other hooks. */
  readonly eventName: string | null;
  readonly #request: string | null;

  constructor(bag: ActorBag, conn: ConnHandle, request: string | null, eventName: string | null) {
    this.bag = bag;
    this.conn = conn;
    this.eventName = eventName;
    this.#request = request;
  }

  /** Made when it is first looked at; one of its own where the request belongs to a ray. */
  get ctx(): ActorContext {
    return invokedOver(this.bag, this.conn);
  }

  get params(): Buffer {
    return this.conn.params();
  }

  /** How the client came; undefined within the process. */
  get request(): ConnectionRequest | undefined {
    return this.#request === null ? undefined : JSON.parse(this.#request);
  }
}

/** Who calls: 0 a client, 1 an actor, 2 code of this process, 3 a schedule. */
export type CallerKind = 0 | 1 | 2 | 3;

/** Runs one of the hooks, `run` or `serializeState`. */
export class HookEntry implements Entry {
  readonly weight = JOB_WEIGHT;
  readonly #host: HookHost;
  readonly #bag: ActorBag;
  readonly #ticket: number;
  readonly #name: string;
  readonly #payload: () => unknown;
  readonly #encode: (result: unknown) => Uint8Array | WholeDelta | undefined;
  /** Under what a failure is kept for whoever waits for it here. */
  readonly #failure: string | undefined;

  private constructor(
    host: HookHost,
    bag: ActorBag,
    ticket: number,
    name: string,
    payload: () => unknown,
    encode: (result: unknown) => Uint8Array | WholeDelta | undefined,
    failure?: string,
  ) {
    this.#host = host;
    this.#bag = bag;
    this.#ticket = ticket;
    this.#name = name;
    this.#payload = payload;
    this.#encode = encode;
    this.#failure = failure;
  }

  static hook(
    host: HookHost,
    bag: ActorBag,
    ticket: number,
    label: string,
    input: Uint8Array | null,
    isNew: boolean,
  ) {
    const payload = () => new HookPayload(bag, input, isNew);
    const encode = (result: unknown) => {
      if (label !== "create_state") return undefined;
      bag.firstState = bytesOf(result);
      // Made, and not stored: the first snapshot has to carry it.
      host.turns.handedOver(bag, true);
      return bag.firstState;
    };
    const name = HOOKS[label] ?? label;
    const failure = ENDS.includes(name) ? undefined : bag.identity.actorId;
    return new HookEntry(host, bag, ticket, name, payload, encode, failure);
  }

  static connection(
    host: HookHost,
    bag: ActorBag,
    ticket: number,
    label: string,
    payload: ConnectionPayload,
  ) {
    const encode = (result: unknown) => {
      if (label === "create_conn_state") return bytesOf(result);
      // Parameters anew; the contract knows of no result, so any other one means nothing.
      return label === "on_before_connect" && result instanceof Uint8Array ? result : undefined;
    };
    // A client that is elsewhere is not told what was thrown.
    const failure = payload.conn.isRemote() ? undefined : payload.conn.id();
    return new HookEntry(host, bag, ticket, HOOKS[label] ?? label, () => payload, encode, failure);
  }

  static run(host: HookHost, bag: ActorBag, ticket: number) {
    return new HookEntry(
      host,
      bag,
      ticket,
      "run",
      () => ({ ctx: bag.context, bag }),
      (result) => (result === false ? AGAIN : undefined),
    );
  }

  /** The contract's way to encode state: asked for, and a promise. */
  static serialize(host: HookHost, bag: ActorBag, ticket: number, inspector: boolean) {
    const reason = inspector ? "inspector" : "save";
    return new HookEntry(
      host,
      bag,
      ticket,
      "serializeState",
      () => ({ ctx: bag.context, bag, reason }),
      (result) => {
        const delta = deltaOf(result);
        const state = delta.state ?? bag.firstState;
        if (!inspector) {
          bag.firstState = undefined;
          host.turns.handedOver(bag, state !== undefined);
        }
        if (!hasConnections(delta)) return state;
        return new WholeDelta(state === undefined ? delta : { ...delta, state });
      },
    );
  }

  begin(): void {
    if (this.#bag.stopped !== undefined) {
      this.#answer(true, this.#bag.stopped.error);
      return;
    }
    let given: unknown;
    try {
      const { callbacks } = this.#bag.factory;
      const written = callbacks[this.#name] ?? callbacks[EARLIER[this.#name] ?? this.#name];
      const callback = written as Callback<unknown> | undefined;
      given = callback?.(null, this.#payload());
    } catch (thrown) {
      this.#answer(true, thrown);
      return;
    }
    whenSettled(
      given,
      (value) => this.#answer(false, value),
      (thrown) => this.#answer(true, thrown),
    );
  }

  #answer(failed: boolean, outcome: unknown): void {
    const { native, turns, tickets } = this.#host;
    let bytes: Uint8Array | WholeDelta | undefined;
    if (!failed) {
      try {
        bytes = this.#encode(outcome);
      } catch (thrown) {
        failed = true;
        outcome = thrown;
      }
    }
    if (failed) {
      const record = recordOf(outcome);
      if (this.#failure !== undefined && this.#bag.stopped === undefined)
        record.thrown = tickets.failures.keep(this.#failure, outcome);
      native.complete(this.#bag.actor, this.#ticket, 1, encodeRecord(record));
    } else if (bytes instanceof WholeDelta) {
      native.completeSave(this.#bag.actor, this.#ticket, bytes.delta);
    } else native.complete(this.#bag.actor, this.#ticket, 0, bytes);
    turns.retry(this.#bag);
  }
}

/** Hands over the state that the author's layer encodes at once. */
export class SnapshotEntry implements Entry {
  readonly weight = JOB_WEIGHT;

  constructor(
    readonly host: HookHost,
    readonly bag: ActorBag,
    readonly ticket: number,
    readonly inspector: boolean,
  ) {}

  begin(): void {
    const { native, turns } = this.host;
    const { bag } = this;
    bag.factory.callbacks.settleConnections?.(bag);
    let last = false;
    if (!this.inspector && bag.abortReason !== undefined && !bag.firstState) {
      const commit = turns.pushStopping(bag);
      if (commit > 0) {
        turns.handedOver(bag, bag.handedOver);
        native.complete(bag.actor, this.ticket, 0);
        return;
      }
      last = commit < 0;
    } else if (!this.inspector) {
      // Handed over as a commit of its own where that is possible: then this side
      // knows its number, which answers in place wait for.
      if (bag.factory.gated && turns.push(bag) > 0) {
        native.complete(bag.actor, this.ticket, 0);
        return;
      }
      if (!turns.owes(bag) && !bag.handedOver) {
        turns.handedOver(bag, false);
        native.complete(bag.actor, this.ticket, 0);
        return;
      }
    }
    const encoded = turns.encode(bag) ?? bag.firstState;
    if (encoded === BROKEN) return;
    // What changes from here on would be lost without a word.
    if (last) bag.sealed = true;
    if (!this.inspector) {
      bag.firstState = undefined;
      bag.dirty = false;
      // What looked changed is not: answers wait for what is on its way at most.
      if (encoded === undefined && !bag.handedOver) turns.nothingChanged(bag);
      turns.handedOver(bag, encoded !== undefined);
    }
    native.complete(bag.actor, this.ticket, 0, encoded);
  }
}
