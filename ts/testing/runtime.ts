/**
 * `testRuntime()`: actors in memory, on a clock that stands still until the test moves it.
 *
 * 1. Handles stay valid: each call goes to the host that is open when it is made, and waits for the next
 *    one while a crash or a restart is on its way.
 * 2. What moves the runtime (advance, evict, restart, close) is done one after the other; a crash comes
 *    at once.
 * 3. What a crash left running belongs to no process: its calls are refused.
 */

import { makeFactory } from "../actors/adapter";
import { Context } from "../actors/context";
import type { Scene } from "../actors/live";
import { type ClientMaker, clientMaker } from "../calls/client";
import { checkKeys, describe } from "../definition/keys";
import { RivetError } from "../errors";
import type { LoggingOptions } from "../log";
import { type CrashPoint, dispatch, type Hold, type Host, type Trial } from "../native-half";
import type { Registry } from "../registry";
import { manage } from "../registry/actor";
import { leaveNativeLines, takeNativeLines } from "../registry/native-log";
import { readSetup, type Setup, type WithDeps } from "../registry/options";
import type {
  ActorHandle,
  AnyActorDefinition,
  Client,
  Definitions,
  WithoutReservedActors,
} from "../types";
import { type Duration, readDuration } from "./duration";
import { Jobs } from "./jobs";
import { Rest } from "./rest";

export type { CrashPoint };

/** What is given to `testRuntime()`, beside `deps`. */
export interface TestSettings<U extends Definitions> {
  /** The actors, by the name under which they are called. */
  use: U & WithoutReservedActors;
  /** A whole number from 0. The same gives the same ids. Default 1. */
  seed?: number | undefined;
  /** When it begins, in milliseconds since the epoch or as a date. Default 2025-01-01T00:00:00Z. */
  now?: number | Date | undefined;
  /** Which lines are logged, and where to. */
  logging?: LoggingOptions | undefined;
  /**
   * How long an author's function that waits for nothing on the clock may take for real, in
   * milliseconds. Default 5,000.
   */
  stallTimeout?: number | undefined;
}

/** What is given to `testRuntime()`. */
export type TestOptions<U extends Definitions> = TestSettings<U> & WithDeps<U>;

/** How a process ends. */
export interface EndOptions {
  /** How long it is before the next one begins, on the clock. Nothing runs meanwhile. Default 0. */
  down?: Duration | undefined;
}

/** The clock of a test runtime. */
export interface TestClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /**
   * Moves the clock, stopping at everything that becomes due on the way, in order, until it is done:
   * milliseconds, or a number and a unit such as `"30 days"`. With 0 it does what is due or on its way.
   *
   * @throws rejects with `testing.stalled` when a function of an actor works for longer than
   * `stallTimeout`, and with a TypeError for what is no duration.
   */
  advance(duration: Duration): Promise<void>;
}

/** An actor that is awake. */
export interface Awake {
  readonly name: string;
  readonly key: string[];
  /** Why it is awake; empty when it only waits for its sleep timeout. */
  readonly holds: readonly Hold[];
}

const START_MS = Date.UTC(2025, 0, 1);
const STALL_MS = 5_000;
/** Longer than any grace period: how long an actor may take to stop is its own option. */
const PATIENCE_MS = 2 ** 31 - 1;
const LIST = 1_000;

const keys = {
  place: "testRuntime()",
  known: ["use", "deps", "seed", "now", "logging", "stallTimeout"],
};

export class TestRuntime<U extends Definitions = Definitions> {
  /** Calls the actors. Its handles stay valid over sleeps, crashes and restarts. */
  readonly client: Client<Registry<U>>;
  readonly clock: TestClock;
  readonly #setup: Setup;
  readonly #trial: Trial;
  readonly #jobs = new Jobs();
  readonly #rest: Rest;
  readonly #makeClient: ClientMaker;
  /** Counts the processes that the test has seen. */
  #process = 0;
  #host: Host | (() => Promise<Host>);
  /** The last of those that move the runtime (2). */
  #last: Promise<unknown> = Promise.resolve();
  #crashing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: TestOptions<U>) {
    checkKeys(options, keys);
    const {
      use,
      deps,
      logging,
      stallTimeout = STALL_MS,
    } = options as TestSettings<U> & {
      deps?: unknown;
    };
    this.#setup = readSetup({ use, deps, logging, storage: ":memory:" });
    const holds = async (id: string) => (await (await this.#opened()).info(id))?.holds ?? [];
    this.#rest = new Rest(this.#jobs, milliseconds(stallTimeout, "stallTimeout"), holds);
    this.#trial = dispatch.openTrial({ now: startOf(options.now), seed: seedOf(options.seed) });
    takeNativeLines(this.#setup.logging);
    const makeClient = clientMaker(this.#setup.definitions);
    this.#makeClient = makeClient;
    this.#host = this.#begin();
    this.client = makeClient(() => ({
      host: this.#host,
      live: undefined,
      call: undefined,
      from: undefined,
    })) as Client<Registry<U>>;
    this.clock = {
      now: () => this.#trial.now,
      advance: (duration) => this.#advance(duration),
    };
  }

  /** Puts an actor to sleep, and resolves when it does. One that is not awake is left alone. */
  evict(handle: ActorHandle<AnyActorDefinition> | object | string): Promise<void> {
    return this.#inTurn(() => {
      const actor = manage(() => this.#opened(), handle);
      return this.#drive(actor.sleep());
    });
  }

  /**
   * The process dies: nothing is flushed, no hook runs, open calls are rejected with `testing.crashed`.
   * Resolves when the next one has begun on what was durable. Called again meanwhile it is the same
   * crash.
   *
   * @throws rejects with a TypeError for what is no duration.
   */
  async crash(options?: EndOptions): Promise<void> {
    const down = downOf(options, "crash()");
    this.#crashing ??= this.#crash(down).finally(() => {
      this.#crashing = undefined;
    });
    await this.#crashing;
  }

  async #crash(down: number): Promise<void> {
    const { over } = await this.#leave((host) => this.#trial.crash(host), down);
    await over;
    await this.#opened();
  }

  /**
   * Every actor comes to rest, as when a process is stopped, and the next one begins.
   *
   * @throws rejects with a TypeError for what is no duration.
   */
  async restart(options?: EndOptions): Promise<void> {
    const down = downOf(options, "restart()");
    await this.#inTurn(async () => {
      const { over } = await this.#leave((host) => host.shutdown(PATIENCE_MS), down);
      await this.#drive(over);
      await this.#opened();
    });
  }

  /** The next commit of any actor fails with `storage.full`. Called twice, the next two do. */
  async failNextCommit(): Promise<void> {
    await this.#opened();
    this.#trial.failNextCommit();
  }

  /**
   * The process dies at the next commit of any actor: `"before_commit"`, when nothing of it is written,
   * or `"after_commit"`, when it is durable and nobody has heard so. Resolves when it has crashed and the
   * next process has begun; what was planned before is replaced.
   */
  async crashAt(point: CrashPoint): Promise<void> {
    if (point !== "before_commit" && point !== "after_commit") {
      throw new TypeError(
        `crashAt() takes "before_commit" or "after_commit", not ${describe(point)}`,
      );
    }
    await this.#opened();
    await this.#trial.crashAt(point);
    await this.crash();
  }

  /** The actors that are awake, in the order of their creation, and why. */
  async awake(): Promise<Awake[]> {
    const host = await this.#opened();
    const found: Awake[] = [];
    let after: number | undefined;
    do {
      const part = await host.list({ limit: LIST, ...(after === undefined ? {} : { after }) });
      for (const { id, awake } of part.actors) {
        const info = awake ? await host.info(id) : null;
        if (info?.awake !== true) continue;
        found.push({ name: info.name, key: info.key.map(String), holds: info.holds });
      }
      after = part.actors.length < LIST ? undefined : (part.cursor ?? undefined);
    } while (after !== undefined);
    return found;
  }

  /** Every actor comes to rest, and what is stored is forgotten. Called again it gives the same. */
  close(): Promise<void> {
    this.#closing ??= this.#inTurn(() => this.#end());
    return this.#closing;
  }

  /** As {@link TestRuntime.close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #end(): Promise<void> {
    const host = await this.#opened();
    const over = host.shutdown(PATIENCE_MS);
    this.#process += 1;
    this.#host = () => Promise.reject(closed());
    try {
      await this.#drive(over);
    } finally {
      leaveNativeLines(this.#setup.logging);
      this.#trial.close();
    }
  }

  async #advance(duration: Duration): Promise<void> {
    const ms = readDuration(duration, "advance()");
    await this.#inTurn(async () => {
      await this.#opened();
      const end = this.#trial.now + ms;
      await this.#settle();
      while (this.#trial.step(Math.max(0, end - this.#trial.now)) !== undefined) {
        await this.#settle();
      }
    });
  }

  /** Nothing happens any more without time, and every process that is to begin has. */
  async #settle(): Promise<void> {
    for (;;) {
      const process = this.#process;
      await this.#opened();
      await this.#rest.reach();
      if (process === this.#process) return;
    }
  }

  /** Waits for the end of something that may need time, and lets that pass where nothing else helps. */
  async #drive<T>(ending: Promise<T>): Promise<T> {
    let over = false;
    const end = (): void => {
      over = true;
    };
    ending.then(end, end);
    while (!over) {
      await this.#rest.reach();
      // A thread may have a word to say yet.
      if (!over) await this.#rest.moment();
      if (!over && dispatch.drain()) continue;
      const { due } = this.#trial;
      if (!over && due !== undefined) this.#trial.step(due);
    }
    return ending;
  }

  /** Begins a process once the one before is over, and `down` milliseconds have passed. */
  #begin(before?: Promise<unknown>, down = 0): () => Promise<Host> {
    this.#process += 1;
    const process = this.#process;
    const opening = (async () => {
      // How that went is for whoever asked for it.
      await before?.catch(() => {});
      for (let left: number | undefined = down; left !== undefined && left > 0; ) {
        left = this.#trial.step(left);
      }
      const host = await this.#trial.openHost();
      const scene = this.#sceneOf(process);
      for (const [name, definition] of this.#setup.definitions) {
        host.register(name, makeFactory(definition, scene));
      }
      if (process === this.#process) this.#host = host;
      return host;
    })();
    // Told to whoever needs it.
    opening.catch(() => {});
    return () => opening;
  }

  /** Has the process that is open end by `end`, and the next one begin after it. */
  async #leave<T>(
    end: (host: Host) => Promise<T>,
    down: number,
  ): Promise<{ readonly over: Promise<T> }> {
    for (;;) {
      // At once where there is one: what is called from here on waits for the next.
      const host = typeof this.#host === "function" ? await this.#host() : this.#host;
      // Otherwise it was left while this one waited.
      if (this.#host !== host) continue;
      const over = end(host);
      this.#host = this.#begin(over, down);
      return { over };
    }
  }

  #sceneOf(process: number): Scene {
    const host = (): Host | (() => Promise<Host>) =>
      process === this.#process ? this.#host : () => Promise.reject(crashed());
    return {
      logging: this.#setup.logging,
      deps: this.#setup.deps,
      noted: this.#jobs,
      client: (context) => {
        const { live, call } = Context.inside(context);
        return this.#makeClient(() => ({ host: host(), live, call, from: context }));
      },
    };
  }

  async #opened(): Promise<Host> {
    const host = this.#host;
    return typeof host === "function" ? host() : host;
  }

  #inTurn<T>(body: () => Promise<T>): Promise<T> {
    const done = this.#last.then(body);
    this.#last = done.catch(() => {});
    return done;
  }
}

function downOf(options: EndOptions | undefined, method: string): number {
  const given: object = options ?? {};
  checkKeys(given, { place: `options of ${method}`, known: ["down"] });
  const { down = 0 } = given as EndOptions;
  return readDuration(down, `down of ${method}`);
}

function milliseconds(value: unknown, key: string): number {
  if (typeof value === "number" && value >= 0 && value <= 2 ** 31 - 1) return value;
  throw new TypeError(`${key} of testRuntime() is ${describe(value)}, not milliseconds from 0`);
}

function startOf(now: unknown = START_MS): number {
  const ms = now instanceof Date ? now.getTime() : now;
  if (typeof ms === "number" && Number.isSafeInteger(ms)) return ms;
  throw new TypeError(
    `now of testRuntime() is ${describe(now)}, not a date or whole milliseconds since the epoch`,
  );
}

function seedOf(seed: unknown = 1): number {
  if (typeof seed === "number" && Number.isSafeInteger(seed) && seed >= 0) return seed;
  throw new TypeError(`seed of testRuntime() is ${describe(seed)}, not a whole number from 0`);
}

/** The same as Rust says to callers of a process that crashed. */
function crashed(): RivetError {
  return new RivetError("testing", "crashed", "the process crashed, as the test asked for");
}

function closed(): RivetError {
  return new RivetError("registry", "shut_down", "the test runtime was closed");
}

/**
 * Starts a runtime for a test: in memory, with a clock that stands still, ids from `seed`.
 *
 * @throws TypeError naming the option, for what is unknown or wrong.
 */
export function testRuntime<const U extends Definitions>(options: TestOptions<U>): TestRuntime<U> {
  return new TestRuntime(options);
}
