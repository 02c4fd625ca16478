/**
 * One registry of the contract on its way: registering, serving or serverless, shutting down, shut down.
 *
 * 1. It serves at most once, in one of the two ways; what comes later is refused by name.
 * 2. Its actors live in one host, opened when it first serves. Who asks before that waits.
 * 3. `serve()` resolves when everything has come to rest, and not before.
 */
import * as clockwork from "../clockwork.js";
import { dispatch } from "../environment.js";
import { invalidState, recordOf, toBridge } from "../errors.js";
import type { NapiActorFactory } from "../factory.js";
import type { HostHandle } from "../host.js";
import { placeOf, type ServeConfig, storageFolder } from "./config.js";
import { startLogging } from "./log.js";

export type Mode = "serving" | "serverless";
export type Phase = "registering" | Mode | "shuttingDown" | "shutDown";

/** What has been opened. */
export interface Open {
  readonly host: HostHandle;
  /** The number of the gateway. */
  readonly gateway: number;
}

/** How long an actor without a setting may take to come to rest, in milliseconds. */
const GRACE_MS = 15_000;

/** How long the last state of an actor may take, in milliseconds, and a little for the rest. */
const LAST_STATE_MS = 16_000;

/** How long to wait for a folder that another process has, such as the one that a watcher restarts. */
const LOCK_MS = 10_000;

export class RegistryState {
  phase: Phase = "registering";
  /** The last one that anybody brought. */
  config: ServeConfig | undefined;
  readonly factories = new Map<string, NapiActorFactory>();
  /** Resolves when it serves, rejects when it cannot. */
  readonly ready = deferred<Open>();
  readonly #over = deferred<void>();
  open: Open | undefined;
  /** Why it could not serve. */
  failure: Error | undefined;
  /** What is told at the beginning of the end: an answer that goes on would hold it up. */
  readonly closing = new Set<() => void>();
  #opening: Promise<Open> | undefined;
  #ending: Promise<void> | undefined;

  constructor() {
    // Nobody needs to wait for them.
    this.ready.promise.catch(() => {});
    this.#over.promise.catch(() => {});
  }

  /**
   * Begins to serve in a way, or joins in where it already does so serverless. There a failure is that of one
   * request: the next one tries again.
   */
  begin(mode: Mode, config: ServeConfig): Promise<Open> {
    const joins = mode === "serverless" && this.phase === "serverless";
    if (this.phase !== "registering" && !joins) {
      return Promise.reject(refusal("already serving or shut down"));
    }
    this.phase = mode;
    this.config = config;
    this.#opening ??= this.#open(config);
    return this.#opening;
  }

  /** Resolves when it has been shut down and everything has come to rest (3). */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Shuts down, once. Harmless where nothing has begun. */
  shutdown(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  /** How long everything may take to come to rest, in milliseconds. */
  get graceMs(): number {
    const graces = [...this.factories.values()].map((factory) => factory.graceMs ?? GRACE_MS);
    return Math.max(GRACE_MS, ...graces) + LAST_STATE_MS;
  }

  async #open(config: ServeConfig): Promise<Open> {
    try {
      startLogging();
      const place = placeOf(config);
      const host = await dispatch.openHost({
        path: storageFolder(),
        shared: true,
        lockTimeoutMs: LOCK_MS,
      });
      try {
        for (const [name, factory] of this.factories) host.register(name, factory);
        const { listener } = await host.listen({
          ...place,
          pagesOfThisMachine: true,
          inspectsInRuntime: config.handleInspectorHttpInRuntime === true,
        });
        this.open = { host, gateway: listener };
      } catch (error) {
        await host.shutdown(0);
        throw error;
      }
      this.ready.resolve(this.open);
      return this.open;
    } catch (error) {
      const bridged = toBridge(recordOf(error));
      if (this.phase === "serverless") {
        this.phase = "registering";
        this.#opening = undefined;
        throw bridged;
      }
      this.failure = bridged;
      this.ready.reject(bridged);
      // What has failed to begin is at its end.
      this.phase = "shutDown";
      this.#over.resolve();
      throw bridged;
    }
  }

  async #end(): Promise<void> {
    const began = this.#opening;
    this.phase = "shuttingDown";
    for (const close of this.closing) close();
    try {
      const open = await began?.catch(() => undefined);
      this.open = undefined;
      await open?.host.shutdown(this.graceMs);
      this.#over.resolve();
    } catch (error) {
      // Whoever serves hears of it: who ends it cannot do more.
      this.#over.reject(toBridge(recordOf(error)));
    }
    this.phase = "shutDown";
    this.ready.reject(refusal("shut down"));
  }
}

/** A registry refuses what is asked of it, in the contract's form. */
export function refusal(reason: string): Error {
  return invalidState("core registry", reason);
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((onValue, onReason) => {
    resolve = onValue;
    reject = onReason;
  });
  return { promise, resolve, reject };
}

/** Keeps the process until `promise` has settled. */
export async function holding<T>(promise: Promise<T>): Promise<T> {
  const held = clockwork.holdProcess();
  try {
    return await promise;
  } finally {
    held.unref();
  }
}
