/**
 * Opens the host of a registry, once, when it is first needed.
 *
 * 1. A failed opening is told to everyone who waited for it, and tried again by the next.
 * 2. Once a registry was shut down nothing opens it again.
 */

import { resolve } from "node:path";

import { makeFactory } from "../actors/adapter";
import type { Scene } from "../actors/live";
import { RivetError } from "../errors";
import { dispatch, type Host } from "../native-half";
import { leaveNativeLines, takeNativeLines } from "./native-log";
import type { Setup } from "./options";

export class Opening {
  readonly #setup: Setup;
  readonly #scene: Scene;
  #opening: Promise<Host> | undefined;
  #host: Host | undefined;
  #closed = false;

  constructor(setup: Setup, scene: Scene) {
    this.#setup = setup;
    this.#scene = scene;
  }

  /** The host if it is open, else how to get it. */
  get host(): Host | (() => Promise<Host>) {
    return this.#host ?? this.#open;
  }

  /** Opens the host if that has not happened. */
  readonly #open = (): Promise<Host> => {
    if (this.#closed) return Promise.reject(shutDown());
    this.#opening ??= this.#start().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  };

  /** The host, opened if need be. */
  get opened(): Promise<Host> {
    return this.#host === undefined || this.#closed ? this.#open() : Promise.resolve(this.#host);
  }

  /** Lets nothing be opened or called any more, and gives what was open. */
  async close(): Promise<Host | undefined> {
    this.#closed = true;
    return this.#host ?? (await this.#opening?.catch(() => undefined));
  }

  /** The end of {@link close}: the host was shut down. */
  ended(): void {
    leaveNativeLines(this.#setup.logging);
  }

  async #start(): Promise<Host> {
    const { folder, threads, lockTimeout, definitions } = this.#setup;
    const options = {
      ...(folder === undefined ? {} : { path: resolve(folder) }),
      shared: threads === "shared",
      lockTimeoutMs: lockTimeout,
    };
    const host = await dispatch.openHost(options);
    for (const [name, definition] of definitions) {
      host.register(name, makeFactory(definition, this.#scene));
    }
    this.#host = host;
    takeNativeLines(this.#setup.logging);
    return host;
  }
}

function shutDown(): RivetError {
  return new RivetError("registry", "shut_down", "the registry was shut down");
}
