/**
 * The end of a turn, and what follows from it: what one turn changed is handed
 * over together, and while a commit is on its way later turns gather for the next.
 *
 * 1. A turn ends when the event loop has turned, or at the start of the next drain.
 *    An answer that may reveal a change waits for its commit, so nothing leaves
 *    before its turn has ended.
 * 2. One commit per actor is on its way at a time, unless a save is asked for.
 * 3. The process is held from the first change until it is durable. Where answers
 *    do not wait and the state can be encoded at once, only a commit that is on its
 *    way holds it: a script need not stay for its save interval, since the end of
 *    the process hands over what has changed.
 */
import type { ActorBag } from "./bags.js";
import { type ErrorRecord, encodeRecord, fromRecord, recordOf } from "./errors.js";
import type { KeepAlive } from "./keepalive.js";

/** What turns need of the Rust side. */
export interface CommitPort {
  markDirty(actor: number): void;
  commit(actor: number, state: Uint8Array | null): number;
  commitRows(actor: number): number;
  breakGeneration(actor: number, record: Uint8Array): void;
}

export class Turns {
  readonly #native: CommitPort;
  readonly #keepAlive: KeepAlive;
  readonly #watch: () => void;
  /** Actors whose turn changed something. */
  #changed: ActorBag[] = [];
  /** Actors with statements in this turn. */
  #statements: { readonly bag: ActorBag; readonly ended: () => void }[] = [];

  /** `watch` sees to it that {@link Turns.end} is called once the loop has turned. */
  constructor(native: CommitPort, keepAlive: KeepAlive, watch: () => void) {
    this.#native = native;
    this.#keepAlive = keepAlive;
    this.#watch = watch;
  }

  /** The state of an actor has changed. */
  changed(bag: ActorBag): void {
    if (bag.dirty || bag.stopped !== undefined) return;
    bag.dirty = true;
    this.#native.markDirty(bag.actor);
    this.#settleHold(bag);
    this.#gather(bag);
  }

  /** Rows of an actor have changed: the end of the turn commits them, with any durability. */
  wrote(bag: ActorBag): void {
    if (bag.wrote || bag.stopped !== undefined) return;
    bag.wrote = true;
    this.#changed.push(bag);
    this.#watch();
  }

  /** Statements ran in this turn: `ended` is to be called once what it changed was handed over. */
  usedSql(bag: ActorBag, ended: () => void): void {
    if (bag.usesSql) return;
    bag.usesSql = true;
    this.#statements.push({ bag, ended });
    this.#watch();
  }

  /** Ends the turn (1). */
  end(): void {
    if (this.#changed.length > 0) {
      const bags = this.#changed;
      this.#changed = [];
      for (const bag of bags) {
        if (bag.inFlight === 0) this.push(bag);
      }
    }
    if (this.#statements.length === 0) return;
    const statements = this.#statements;
    this.#statements = [];
    for (const { bag, ended } of statements) {
      bag.usesSql = false;
      ended();
    }
  }

  /**
   * Hands over what has changed: the number of the commit after which all of it is
   * durable, 0 when nothing can have changed, -1 when nothing can be handed over now.
   */
  push(bag: ActorBag): number {
    if (!this.owes(bag) || bag.stopped !== undefined) return 0;
    return this.#commit(bag);
  }

  /**
   * Hands over the state of an actor that stops, whether it changed or not: -1 when
   * it has to be given to who asked for it, since that is the last save.
   */
  pushStopping(bag: ActorBag): number {
    return bag.stopped === undefined ? this.#commit(bag) : 0;
  }

  #commit(bag: ActorBag): number {
    bag.factory.callbacks.settleConnections?.(bag);
    if (bag.factory.callbacks.encodeState === undefined) return this.#commitRows(bag);
    const encoded = this.encode(bag);
    if (encoded === BROKEN) return -1;
    const commit = this.#native.commit(bag.actor, encoded ?? null);
    if (commit < 0) return commit;
    bag.dirty = false;
    bag.wrote = false;
    if (commit > bag.durable) bag.inFlight = commit;
    if (encoded === undefined) {
      bag.held?.settleFor(commit);
      bag.held?.release(bag.durable);
    }
    this.#settleHold(bag);
    return commit;
  }

  /** A state transaction commits everything that there is to save. */
  committing(bag: ActorBag, commit: number): void {
    bag.dirty = false;
    bag.wrote = false;
    if (commit > bag.durable) bag.inFlight = commit;
    bag.held?.settleFor(commit);
    bag.held?.release(bag.durable);
    this.#settleHold(bag);
  }

  /** Rows go by themselves where the state is asked for. */
  #commitRows(bag: ActorBag): number {
    const commit = this.#native.commitRows(bag.actor);
    if (commit < 0) return commit;
    bag.wrote = false;
    if (commit > bag.durable) bag.inFlight = commit;
    this.#settleHold(bag);
    return commit;
  }

  /** Whether anything has changed, or may have without a word. */
  owes(bag: ActorBag): boolean {
    return bag.dirty || bag.wrote || bag.factory.callbacks.suspectsState?.(bag) === true;
  }

  /** Something happened after which a commit that could not begin may be able to. */
  retry(bag: ActorBag): void {
    if (bag.inFlight !== 0) return;
    if (bag.dirty) this.#gather(bag);
    if (!bag.wrote) return;
    this.#changed.push(bag);
    this.#watch();
  }

  /** The encoded state; undefined when there is none. Where it cannot be encoded, memory is ahead of the store for good, so the generation breaks. */
  encode(bag: ActorBag): Uint8Array | undefined | typeof BROKEN {
    try {
      return bag.factory.callbacks.encodeState?.(bag);
    } catch (thrown) {
      this.#native.breakGeneration(bag.actor, encodeRecord(recordOf(thrown)));
      return BROKEN;
    }
  }

  /** A commit ended. */
  committed(bag: ActorBag, commit: number, failed: ErrorRecord | undefined): void {
    bag.handedOver = false;
    if (failed === undefined) {
      bag.durable = Math.max(bag.durable, commit);
    } else {
      // Only an actor whose answers do not wait hears of this and lives: it is
      // asked again, and has to have something to say.
      bag.dirty = true;
    }
    if (commit >= bag.inFlight) bag.inFlight = 0;
    if (failed === undefined) bag.held?.release(commit);
    else bag.held?.fail(fromRecord(failed));
    bag.dropEmptyHeld();
    this.retry(bag);
    this.#settleHold(bag);
  }

  /** No further commit will come for what waits: the last one known is all there is. */
  nothingChanged(bag: ActorBag): void {
    bag.held?.settleFor(Math.max(bag.inFlight, bag.durable));
    bag.held?.release(bag.durable);
  }

  /** A save was asked for. */
  asked(bag: ActorBag): void {
    if (bag.stopped !== undefined) return;
    bag.asked = true;
    this.#settleHold(bag);
  }

  /** The state was asked for and handed over, unless there was nothing to hand over. */
  handedOver(bag: ActorBag, anything: boolean): void {
    // A hook that ends after its generation has nobody to hand anything to.
    if (bag.stopped !== undefined) return;
    bag.asked = false;
    bag.handedOver = anything;
    this.#settleHold(bag);
  }

  /** The generation ended. */
  stopped(bag: ActorBag): void {
    bag.dirty = false;
    bag.wrote = false;
    bag.handedOver = false;
    bag.asked = false;
    bag.inFlight = 0;
    this.#settleHold(bag);
  }

  #gather(bag: ActorBag): void {
    if (!bag.factory.gated || bag.factory.callbacks.encodeState === undefined) return;
    this.#changed.push(bag);
    this.#watch();
  }

  /** See (3). */
  #settleHold(bag: ActorBag): void {
    const waits = bag.factory.gated || bag.factory.callbacks.encodeState === undefined;
    const unsaved = (bag.dirty && waits) || bag.asked || bag.handedOver || bag.inFlight !== 0;
    // No commit of a generation that ended is heard of.
    const owes = unsaved && bag.stopped === undefined;
    if (owes === bag.holds) return;
    bag.holds = owes;
    if (owes) this.#keepAlive.hold();
    else this.#keepAlive.release();
  }
}

/** The state could not be encoded. */
export const BROKEN = Symbol("broken");
