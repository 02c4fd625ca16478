/**
 * The state of one connection, as its author changes it: proxies over what was decoded, encoded again
 * when it is handed over.
 *
 * 1. A change is handed over before anything that was made after it leaves, and with the turn at the
 *    latest.
 * 2. What cannot be watched and was handed out is compared with what was handed over last, each time.
 * 3. Once a transaction gave a state back, the old one is not to be changed any more: nobody would
 *    ever store it.
 */

import type { Live } from "../actors/live";
import { decode, encode, sameBytes } from "../codec";
import { messageOf, RivetError } from "../errors";
import type { NativeConnection } from "../native-half";
import { adopt, type Owner, seen } from "../state";
import type { Desk } from "./desk";

export class Cell implements Owner {
  readonly called = "conn.state";
  readonly live: Live;
  readonly #desk: Desk;
  readonly #handle: NativeConnection;
  #root: unknown;
  #changed = false;
  #exposed = false;
  #outdated = false;

  constructor(desk: Desk, handle: NativeConnection) {
    this.#desk = desk;
    this.live = desk.live;
    this.#handle = handle;
    const value = decode(handle.state());
    this.#root = typeof value === "object" && value !== null ? adopt(value, this) : value;
  }

  get root(): unknown {
    return this.#root;
  }

  get value(): unknown {
    return seen(this.#root, this);
  }

  set value(given: unknown) {
    this.permit();
    const root = adopt(given, this);
    this.change();
    this.#root = root;
  }

  permit(): void {
    const { bag } = this.live;
    if (this.#outdated) {
      throw this.#refusal(
        "connection",
        "state_outdated",
        "a transaction that was rolled back gave this state back: read conn.state again",
      );
    }
    if (bag.stopped !== undefined) {
      const message = "the state of a connection cannot be changed when its actor has stopped";
      throw this.#refusal("actor", "stopped", message);
    }
    if (bag.sealed) {
      const message =
        "the state of a connection cannot be changed after the last save of its actor";
      throw this.#refusal("actor", "stopping", message);
    }
  }

  change(): void {
    this.permit();
    if (this.#changed) return;
    this.#changed = true;
    this.#desk.changed(this, this.#handle.isHibernatable());
  }

  suspect(): void {
    if (this.live.bag.stopped !== undefined || this.#outdated) return;
    this.#exposed = true;
    this.#desk.exposed(this);
  }

  /** Whether the connection is one of the actor's: only then is it worth comparing (2). */
  get isVisible(): boolean {
    return this.#handle.isVisible();
  }

  /** Hands over what has changed. */
  store(): void {
    if (this.#outdated || (!this.#changed && !this.#exposed)) return;
    this.#changed = false;
    const bytes = this.#encoded();
    if (!sameBytes(bytes, this.#handle.state())) this.#handle.setState(bytes);
  }

  /** What it has is not what is stored (3). */
  outdate(): void {
    this.#outdated = true;
    this.#changed = false;
  }

  #encoded(): Uint8Array {
    try {
      return encode(this.#root, "conn.state");
    } catch (error) {
      throw new RivetError("connection", "state_not_storable", messageOf(error), {
        actor: this.live.specifier,
        cause: error,
      });
    }
  }

  #refusal(group: string, code: string, message: string): RivetError {
    return new RivetError(group, code, message, { actor: this.live.specifier });
  }
}
