/**
 * Opens the host of a registry, once: when it is first needed, or as soon as the registry is set up
 * where its folder is open here already, since its definitions replace those of before, or one turn of
 * the event loop later where there is a store, in which something may be due with nobody to call.
 *
 * 1. A failed opening is told to everyone who waited for it, and tried again by the next.
 * 2. Once a registry was shut down nothing opens it again.
 * 3. One that was superseded uses the host for as long as others keep it open, and opens it anew
 *    when it is needed afterwards.
 * 4. What is opened for schedules alone keeps the process alive neither then nor later. That it fails is
 *    logged, and whoever needs the host by then tries again.
 */

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

import { makeFactory } from "../actors/adapter";
import type { Scene } from "../actors/live";
import { messageOf, RivetError } from "../errors";
import { clockwork, dispatch, type Host, type NapiActorFactory } from "../native-half";
import { leaveNativeLines, takeNativeLines } from "./native-log";
import type { Setup } from "./options";
import { type Report, type SharedHost, sharedHosts, type Tenant } from "./shared";

/** Ends the part of a registry in its host, within some milliseconds. */
export type Leave = (graceMs: number) => Promise<Report>;

/** The file by which a folder is known to have a store. */
const STORE = "actors.db";

export class Opening implements Tenant {
  readonly order = sharedHosts.nextOrder();
  readonly names: readonly string[];
  readonly evicts: boolean;
  readonly #setup: Setup;
  readonly #scene: Scene;
  readonly #folder: string | undefined;
  readonly #shutdown: (deadline: number) => Promise<unknown>;
  readonly #superseded: (by: SharedHost) => void;
  #opening: Promise<Host> | undefined;
  /** Whether it is opened because of (4), and has not been yet. */
  #isEarly = false;
  #shared: SharedHost | undefined;
  /** Others run all of its actors, so that it has no part in the host of its own. */
  #isSuperseded = false;
  #closed = false;

  /**
   * `shutdown` shuts the registry down; `superseded` is told whom its place belongs to, each time that
   * it loses it.
   */
  constructor(
    setup: Setup,
    scene: Scene,
    shutdown: (deadline: number) => Promise<unknown>,
    superseded: (by: SharedHost) => void,
  ) {
    this.#setup = setup;
    this.#scene = scene;
    this.#shutdown = shutdown;
    this.#superseded = superseded;
    this.names = [...setup.definitions.keys()];
    this.evicts = setup.reload === "now";
    this.#folder = setup.folder === undefined ? undefined : resolve(setup.folder);
    if (this.#folder !== undefined && sharedHosts.hasOpen(this.#folder)) {
      // Told to whoever needs it first, who tries again (1).
      this.#open().catch(() => {});
    } else if (setup.opens === "start" && this.#hasStore()) {
      // Not now: whoever only looks at the definitions, or calls at once, comes first.
      clockwork.setImmediate(() => this.#openEarly());
    }
  }

  /** The host if it is open, else how to get it. */
  get host(): Host | (() => Promise<Host>) {
    const shared = this.#shared;
    return shared === undefined || shared.ended || this.#closed ? this.#open : shared.host;
  }

  /** The same for the actors, who may outlive their registry where others keep the host open. */
  get actorsHost(): Host | (() => Promise<Host>) {
    return this.#shared?.current.host ?? this.#open;
  }

  /** Opens the host if that has not happened. */
  readonly #open = (): Promise<Host> => {
    if (this.#closed) return Promise.reject(shutDown());
    if (this.#shared?.ended === true) {
      this.#shared = undefined;
      this.#opening = undefined;
    }
    if (this.#isEarly && this.#opening !== undefined) return this.#heldUntil(this.#opening);
    this.#opening ??= this.#start(true).catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  };

  /** The host, opened if need be. */
  get opened(): Promise<Host> {
    const { host } = this;
    return typeof host === "function" ? host() : Promise.resolve(host);
  }

  /** Lets nothing be opened or called any more, and gives how to leave what was open. */
  async close(): Promise<Leave | undefined> {
    this.#closed = true;
    await this.#opening?.catch(() => undefined);
    const shared = this.#shared;
    if (shared === undefined || shared.ended) return undefined;
    return async (graceMs) => {
      const report = await shared.leave(this, graceMs);
      leaveNativeLines(this.#setup.logging);
      return report;
    };
  }

  factoryOf(name: string): NapiActorFactory {
    const definition = this.#setup.definitions.get(name);
    if (definition === undefined) throw new Error(`there is no actor ${name}`);
    return makeFactory(definition, this.#scene);
  }

  superseded(ending: Promise<unknown>): void {
    const { logging } = this.#setup;
    this.#isSuperseded = true;
    leaveNativeLines(logging);
    ending.catch((error) => {
      const msg = `a registry that was replaced could not leave: ${messageOf(error)}`;
      logging.write("error", {}, { msg, error });
    });
    if (this.#shared !== undefined) this.#superseded(this.#shared);
  }

  shutdown(deadline: number): Promise<unknown> {
    return this.#shutdown(deadline);
  }

  #hasStore(): boolean {
    return this.#folder !== undefined && existsSync(join(this.#folder, STORE));
  }

  /** See (4). */
  #openEarly(): void {
    if (this.#closed || this.#opening !== undefined) return;
    this.#isEarly = true;
    const ended = (): void => {
      this.#isEarly = false;
    };
    this.#opening = this.#start(false).finally(ended);
    this.#opening.catch((error) => {
      this.#opening = undefined;
      const msg = `${this.#folder} could not be opened, so what is scheduled there does not run before an actor is called: ${messageOf(error)}`;
      this.#setup.logging.write("warn", {}, { msg, error });
    });
  }

  /** What was begun early, for somebody who needs it: he keeps the process alive, and tries again. */
  async #heldUntil(early: Promise<Host>): Promise<Host> {
    const release = clockwork.hold();
    try {
      return await early.catch(() => this.#open());
    } finally {
      release();
    }
  }

  async #start(holds: boolean): Promise<Host> {
    const { threads, lockTimeout, logging } = this.#setup;
    const folder = this.#folder;
    const opened = await dispatch.openHost(
      {
        ...(folder === undefined ? {} : { path: folder }),
        shared: threads === "shared",
        lockTimeoutMs: lockTimeout,
      },
      holds,
    );
    this.#isSuperseded = false;
    takeNativeLines(logging);
    this.#shared = sharedHosts.join(opened, this, { folder, threads });
    if (this.#shared.threads !== threads) {
      const msg = `threads of setup() is "${threads}", but this thread has ${folder} open as "${this.#shared.threads}": start the program again to change it`;
      logging.write("warn", {}, { msg });
    }
    if (this.#isSuperseded) this.#superseded(this.#shared);
    return this.#shared.host;
  }
}

function shutDown(): RivetError {
  return new RivetError("registry", "shut_down", "the registry was shut down");
}
