/**
 * What the contract's `CoreRegistry` has beyond Rust: it serves its actors from this process.
 *
 * Whatever fails is thrown in the contract's form (`errors.ts`), since its callers read it from there.
 */
import { type CancellationToken, CoreRegistry } from "../../index.js";
import { recordOf, toBridge } from "./errors.js";
import type { NapiActorFactory } from "./factory.js";
import { once } from "./once.js";
import type { ServeConfig } from "./serve/config.js";
import { type ApplicationCallback, type ListenerOptions, listen } from "./serve/listeners.js";
import { health, metadata, metrics, type WholeResponse } from "./serve/responses.js";
import {
  type OnStreamEvent,
  type ServerlessRequest,
  serverlessAnswer,
} from "./serve/serverless.js";
import { holding, RegistryState, refusal } from "./serve/state.js";

declare module "../../index.js" {
  interface CoreRegistry {
    /** Serves the actors at the endpoint. Resolves when everything has come to rest after `shutdown()`. */
    serve(config: ServeConfig): Promise<void>;
    /** Resolves when it serves, also where it has yet to begin. */
    waitReady(): Promise<void>;
    /** Ends the registry, once every actor has come to rest; harmless when repeated. */
    shutdown(): Promise<void>;
    /** How long that may take, in milliseconds. */
    actorStopThresholdMs(): Promise<number>;
    /** Whether it serves. */
    health(): Promise<WholeResponse>;
    /** What it runs. Throws `napi.invalid_state` before it has begun. */
    metadata(): WholeResponse;
    /** What is counted, in Prometheus' text format. */
    metrics(): WholeResponse;
    /** Serves the registry's own routes at an address, before an application. */
    serveListener(
      listener: ListenerOptions,
      config: ServeConfig,
      application?: ApplicationCallback | null,
    ): Promise<void>;
    /** Serves an application at an address, beside the actors that are served elsewhere. */
    serveApplicationListener(
      listener: ListenerOptions,
      application: ApplicationCallback,
      config: ServeConfig,
    ): Promise<void>;
    /** Answers a request to the registry's own routes: with the head, and the body by `onStreamEvent`. */
    handleServerlessRequest(
      request: ServerlessRequest,
      onStreamEvent: OnStreamEvent,
      cancelToken: CancellationToken | null | undefined,
      config: ServeConfig,
    ): Promise<{ status: number; headers: Record<string, string> }>;
  }
}

/** The same for every copy of this module, since all share the native class. */
const states = once("registries", () => new WeakMap<CoreRegistry, RegistryState>());

function stateOf(registry: CoreRegistry): RegistryState {
  let state = states.get(registry);
  if (state === undefined) {
    state = new RegistryState();
    states.set(registry, state);
  }
  return state;
}

const registerNative = CoreRegistry.prototype.register;

const methods = {
  register(this: CoreRegistry, name: string, factory: NapiActorFactory): void {
    const state = stateOf(this);
    if (state.phase !== "registering") throw refusal("already serving or shut down");
    registerNative.call(this, name, factory);
    state.factories.set(name, factory);
  },
  async serve(this: CoreRegistry, config: ServeConfig): Promise<void> {
    const state = stateOf(this);
    await state.begin("serving", config);
    await holding(state.over);
  },
  async waitReady(this: CoreRegistry): Promise<void> {
    const state = stateOf(this);
    if (state.phase === "serverless") {
      throw refusal("mode conflict: serverless registries are never ready by themselves");
    }
    if (state.phase === "shutDown" || state.phase === "shuttingDown") {
      throw state.failure ?? refusal("shut down");
    }
    await state.ready.promise;
  },
  async shutdown(this: CoreRegistry): Promise<void> {
    this.close();
    await stateOf(this).shutdown();
  },
  async actorStopThresholdMs(this: CoreRegistry): Promise<number> {
    return stateOf(this).graceMs;
  },
  async health(this: CoreRegistry): Promise<WholeResponse> {
    return health(stateOf(this));
  },
  metadata(this: CoreRegistry): WholeResponse {
    return metadata(stateOf(this));
  },
  metrics(this: CoreRegistry): WholeResponse {
    return metrics(stateOf(this));
  },
  async serveListener(
    this: CoreRegistry,
    listener: ListenerOptions,
    config: ServeConfig,
    application?: ApplicationCallback | null,
  ): Promise<void> {
    const state = stateOf(this);
    const open = await state.begin("serverless", config);
    await bridged(holding(listen(open, listener, { state, config, application, registry: true })));
  },
  async serveApplicationListener(
    this: CoreRegistry,
    listener: ListenerOptions,
    application: ApplicationCallback,
    config: ServeConfig,
  ): Promise<void> {
    const state = stateOf(this);
    const open = await state.ready.promise;
    await bridged(holding(listen(open, listener, { state, config, application, registry: false })));
  },
  async handleServerlessRequest(
    this: CoreRegistry,
    request: ServerlessRequest,
    onStreamEvent: OnStreamEvent,
    cancelToken: CancellationToken | null | undefined,
    config: ServeConfig,
  ): Promise<{ status: number; headers: Record<string, string> }> {
    const state = stateOf(this);
    if (state.phase === "shutDown" || state.phase === "shuttingDown") {
      throw toBridge({ group: "registry", code: "shut_down", message: "registry is shut down" });
    }
    await state.begin("serverless", config);
    return serverlessAnswer(state, config, request, onStreamEvent, cancelToken);
  },
};

// Once, also where this module is loaded twice in one environment.
if (!Object.hasOwn(CoreRegistry.prototype, "serve")) Object.assign(CoreRegistry.prototype, methods);

async function bridged<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw toBridge(recordOf(error));
  }
}

export { CoreRegistry };
