/**
 * The author's functions, by the number of their factory: Rust knows which there
 * are and keeps none.
 */
import { type JsActorConfig, NapiActorFactory as NativeFactory } from "../../index.js";
import type { ActorBag } from "./bags.js";
import type { ConnectionRequest } from "./connections.js";
import { withInspection } from "./inspection.js";
import { withRequests } from "./requests.js";
import { withSends } from "./sends.js";
import { withSockets } from "./web-socket.js";

/** Error-first, as all functions of the contract: the error is null. */
export type Callback<Payload = never> = (error: null, payload: Payload) => unknown;

/**
 * What an author hands over. The payloads are those of `hooks.ts`; functions that
 * are absent are not called.
 */
export interface Callbacks {
  createState?: Callback | undefined;
  onCreate?: Callback | undefined;
  createVars?: Callback | undefined;
  onMigrate?: Callback | undefined;
  onWake?: Callback | undefined;
  onBeforeActorStart?: Callback | undefined;
  onSleep?: Callback | undefined;
  onDestroy?: Callback | undefined;
  run?: Callback | undefined;
  actions?: Record<string, Callback> | undefined;
  /** Makes the answer of an action of what that gave back. */
  onBeforeActionResponse?: Callback | undefined;
  serializeState?: Callback | undefined;
  /** The encoded state, at once; undefined when it is what was encoded last. With it, the state is handed over at the end of a turn, without it when it is asked for. */
  encodeState?: ((bag: ActorBag) => Uint8Array | undefined) | undefined;
  /** Whether the state may have changed without a word: it is encoded to find out wherever it is saved. */
  suspectsState?: ((bag: ActorBag) => boolean) | undefined;
  onBeforeConnect?: Callback | undefined;
  createConnState?: Callback | undefined;
  onConnect?: Callback | undefined;
  onDisconnectFinal?: Callback | undefined;
  /** Its earlier name. */
  onDisconnect?: Callback | undefined;
  onBeforeSubscribe?: Callback | undefined;
  /** Whether a raw socket with this request outlives a sleep; without it, as the settings say. */
  hibernatesWebSocket?: ((request: ConnectionRequest) => boolean) | undefined;
  /** Gets the raw sockets of clients, as the contract has it. */
  onWebSocket?: Callback | undefined;
  /** Answers requests of clients, as the contract has it. */
  onRequest?: Callback | undefined;
  /** Takes messages of clients for queues, as the contract has it. */
  onQueueSend?: Callback | undefined;
  /** Before anything is handed over: states of connections that changed are to be set now. */
  settleConnections?: ((bag: ActorBag) => void) | undefined;
  [name: string]: unknown;
}

/** A type of actors, as jobs find it. */
export interface Factory {
  readonly callbacks: Callbacks;
  /** Answers wait for what they may reveal to be durable. */
  readonly gated: boolean;
  /** Whether the settings ask for a socket of the actor's own. */
  readonly wantsRuntimeSocket: boolean;
}

/** Those with which actors may still start here, and by how many registrations. */
const factories = new Map<number, { readonly factory: Factory; uses: number }>();

/** The factory of a number. */
export function factoryOf(number: number): Factory | undefined {
  return factories.get(number)?.factory;
}

/** It was registered once more: see {@link forget}. */
export function keep(factory: NapiActorFactory): void {
  const kept = factories.get(factory.number);
  if (kept === undefined) factories.set(factory.number, { factory: factory.functions, uses: 1 });
  else kept.uses += 1;
}

/** Rust has let go of one of its registrations: by that one nothing starts any more. */
export function forget(number: number): void {
  const kept = factories.get(number);
  if (kept !== undefined && --kept.uses === 0) factories.delete(number);
}

/** A type of actors: its functions and its settings. */
export class NapiActorFactory extends NativeFactory {
  /** What is called of it. */
  readonly functions: Factory;
  /** How people see it. */
  readonly display: Record<string, string> = {};
  /** How long its actors may take to come to rest, in milliseconds, if it says so. */
  readonly graceMs: number | undefined;

  constructor(callbacks: Callbacks, config?: JsActorConfig | null) {
    const whole = withInspection(withSends(withRequests(withSockets(callbacks))));
    super(whole, withoutNothing(config));
    if (config?.icon) this.display.icon = config.icon;
    if (config?.name) this.display.name = config.name;
    this.graceMs = config?.sleepGracePeriodMs ?? undefined;
    const wantsRuntimeSocket = config?.enableActorRuntimeSocket === true;
    this.functions = { callbacks: whole, gated: this.gated, wantsRuntimeSocket };
  }
}

/** Settings without those that are null, which counts as absent here as everywhere. */
function withoutNothing(config: JsActorConfig | null | undefined): JsActorConfig | undefined {
  if (config === null || config === undefined) return undefined;
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null));
}
