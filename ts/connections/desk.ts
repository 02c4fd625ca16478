/**
 * The connections of one generation, for its author: which of their states changed, and what they are
 * told.
 *
 * 1. States are handed over in the order of their changes, before whatever is told afterwards.
 * 2. Events leave in the order in which they were made, also where a schema takes its time: whoever
 *    answers a call waits for those that the call made.
 */

import type { Live } from "../actors/live";
import { atTurnsEnd } from "../actors/turn";
import { copy } from "../codec";
import { messageOf } from "../errors";
import { dispatch, type NativeConnection } from "../native-half";
import type { Cell } from "./cell";
import { Conn } from "./conn";
import { Conns } from "./conns";
import { checkedArguments, encodeArguments } from "./events";
import { Sockets } from "./sockets";

export class Desk {
  readonly live: Live;
  readonly #conns = new WeakMap<NativeConnection, Conn>();
  #all: Conns | undefined;
  /** Changed since they were handed over. */
  readonly #changed = new Set<Cell>();
  /** Those of which a part that cannot be watched was handed out. */
  readonly #exposed = new Set<Cell>();
  /** The raw sockets, once there was one. Set by `sockets`. */
  made: Sockets | undefined;
  #isAnnounced = false;
  /** The last event that a schema still looks at. */
  #telling: Promise<void> | undefined;

  constructor(live: Live) {
    this.live = live;
  }

  /** All of them. */
  get all(): Conns {
    this.#all ??= new Conns(this);
    return this.#all;
  }

  /** The raw sockets of clients. */
  get sockets(): Sockets {
    this.made ??= new Sockets(this.live);
    return this.made;
  }

  /** What authors have for a connection of the native half: one object as long as it is used. */
  of(handle: NativeConnection): Conn {
    let conn = this.#conns.get(handle);
    if (conn === undefined) {
      conn = new Conn(this, handle);
      this.#conns.set(handle, conn);
    }
    return conn;
  }

  /** One that is there. */
  get(id: string): Conn | undefined {
    const { bag } = this.live;
    const handle = bag.stopped === undefined ? bag.connections.get(id) : undefined;
    return handle && this.of(handle);
  }

  /** A state has changed. */
  changed(cell: Cell, isHibernatable: boolean): void {
    this.#changed.add(cell);
    this.#note(isHibernatable);
  }

  /** A part of a state was handed out that cannot be watched. */
  exposed(cell: Cell): void {
    if (this.#exposed.has(cell)) return;
    for (const known of this.#exposed) if (!known.isVisible) this.#exposed.delete(known);
    this.#exposed.add(cell);
    this.#note(true);
  }

  /** Hands over all states that changed (1). */
  settle(): void {
    if (this.#changed.size === 0 && this.#exposed.size === 0) return;
    const cells = new Set([...this.#changed, ...this.#exposed]);
    this.#changed.clear();
    try {
      for (const cell of cells) cell.store();
    } catch (error) {
      // Memory is ahead of the store for good.
      dispatch.breaks(this.live.bag, error);
    }
  }

  /** A transaction that was rolled back has given states back. */
  reload(): void {
    this.#changed.clear();
    for (const handle of this.live.bag.connections.known()) {
      if (handle.isHibernatable()) this.#conns.get(handle)?.reload();
    }
  }

  /** Tells all clients that want an event of it. */
  broadcast(name: string, args: unknown[]): void {
    const { bag } = this.live;
    this.tell(name, args, (checked) => {
      if (bag.stopped !== undefined) return;
      const { local, remote } = dispatch.audience(bag, name);
      if (local) dispatch.broadcast(bag, false, name, encodeArguments(checked, false));
      if (remote) dispatch.broadcast(bag, true, name, encodeArguments(checked, true));
    });
  }

  /** Has `leave` called with what the schema of an event makes of its arguments (2). */
  tell(name: string, args: unknown[], leave: (checked: unknown[]) => void): void {
    const rules = this.live.definition.events.get(name);
    const checked = checkedArguments(rules, name, args);
    if (Array.isArray(checked) && this.#telling === undefined) {
      this.settle();
      leave(checked);
      return;
    }
    const now = Array.isArray(checked) ? (copy(checked, "args") as unknown[]) : checked;
    const before = this.#telling;
    const told = (async (): Promise<void> => {
      await before;
      try {
        const ready = await now;
        this.settle();
        leave(ready);
      } catch (error) {
        this.live.log.error({
          msg: `event ${name} was not sent: ${messageOf(error)}`,
          event: name,
          err: error,
        });
      }
    })();
    this.#telling = told;
    void told.then(() => {
      if (this.#telling === told) this.#telling = undefined;
    });
  }

  /** Resolves when what was told so far has left; undefined when it has. */
  told(): Promise<void> | undefined {
    return this.#telling;
  }

  /** Called at the end of the turn. */
  announce(): void {
    this.#isAnnounced = false;
    if (this.live.bag.stopped === undefined) this.settle();
  }

  get log(): Live["log"] {
    return this.live.log;
  }

  #note(isStored: boolean): void {
    const { bag } = this.live;
    if (isStored && bag.factory.gated) dispatch.wrote(bag);
    if (this.#isAnnounced) return;
    this.#isAnnounced = true;
    atTurnsEnd(this);
  }
}
