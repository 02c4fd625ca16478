/**
 * The JavaScript half of the dispatch, one per environment: takes jobs, runs the
 * author's functions, hands over what changed, and lets answers leave.
 *
 * 1. Everything that begins goes through one queue, in the order of acceptance.
 * 2. A drain that fails is followed by another one: nothing is left behind.
 * 3. Nothing an author's function does stops a drain.
 */
import * as native from "../../index.js";
import { ActorBag, type ActorIdentity, type StopOutcome } from "./bags.js";
import { now, setImmediate } from "./clockwork.js";
import { instanceOf } from "./context.js";
import "./connections.js";
import "./kv.js";
import type { FireInfo } from "./schedule.js";
import "./schedule.js";
import "./sql.js";
import "./telemetry.js";
import "./transaction.js";
import { ActionEntry, FiredEntry } from "./actions.js";
import { BUDGET_MS, Entries } from "./entries.js";
import { encodeRecord, fromRecord, readRecord, recordOf } from "./errors.js";
import { flushAtExit } from "./exit.js";
import { factoryOf, forget } from "./factory.js";
import {
  type CallerKind,
  ConnectionPayload,
  HookEntry,
  type HookHost,
  SnapshotEntry,
} from "./hooks.js";
import { HostHandle, type OpenHostOptions, parse, plainly } from "./host.js";
import { Http } from "./http.js";
import { type CallScope, InPlaceCall } from "./inplace.js";
import { Kind, Records } from "./jobs.js";
import { KeepAlive } from "./keepalive.js";
import type { Stop } from "./listen.js";
import { Sessions } from "./sessions.js";
import { Tickets } from "./tickets.js";
import { Trial, type TrialOptions } from "./trial.js";
import { Turns } from "./turns.js";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";

/** A line of Rust's log. */
export interface LogLine {
  readonly level: LogLevel;
  readonly target: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** How many lines were dropped before this one. */
  readonly lost: number;
}

export class Dispatch {
  readonly #keepAlive = new KeepAlive();
  readonly #bags = new Map<number, ActorBag>();
  readonly #tickets = new Tickets(this.#keepAlive);
  readonly #entries = new Entries(() => this.#turns.end());
  readonly #turns: Turns;
  readonly #hooks: HookHost;
  readonly #environment: number;
  readonly #sessions: Sessions;
  /** What crosses of HTTP. */
  readonly http: Http;
  #log: ((line: LogLine) => void) | undefined;
  /** How many batches of jobs were taken. */
  #taken = 0;
  /** A test runtime was opened: what happens must not depend on how fast the machine is. */
  #byTurns = false;
  /** How many drive, and whether something came meanwhile. */
  #drivers = 0;
  #missed = false;

  constructor() {
    this.#turns = new Turns(native, this.#keepAlive, () => this.#entries.watch());
    this.#environment = native.openEnv(() => this.#called());
    const [environment, turns, tickets] = [this.#environment, this.#turns, this.#tickets];
    this.#hooks = { native, environment, turns, tickets };
    this.#sessions = new Sessions(environment, tickets, this.#keepAlive);
    this.http = new Http(environment, tickets, this.#keepAlive);
    flushAtExit(this.#bags, this.#turns);
  }

  /** The number by which Rust knows this environment. */
  get environment(): number {
    return this.#environment;
  }

  /** The running generations whose author's side is here, by number. */
  get bags(): ReadonlyMap<number, ActorBag> {
    return this.#bags;
  }

  /** Opens a host: a folder, or memory. `holds`: whether the process stays alive for it. */
  async openHost(options: OpenHostOptions = {}, holds = true): Promise<HostHandle> {
    const config = JSON.stringify(options);
    const open = (ticket: number) => {
      plainly(() => native.openHost(this.#environment, config, ticket));
    };
    const opened = await this.#tickets.wait(open, { holds });
    const { host, home } = parse<{ host: number; home: number }>(opened);
    return new HostHandle(host, home, this.#sessions, this.#bags);
  }

  /** Begins a trial; from then on JavaScript and Rust go by turns. */
  openTrial(options: TrialOptions): Trial {
    this.#byTurns = true;
    this.#entries.count();
    return new Trial(this.#environment, options, this.#sessions, this.#bags);
  }

  /** For tests: takes what waits, and says whether anything did, or something is yet to begin. */
  drain(): boolean {
    const before = this.#taken;
    this.#missed = false;
    this.#drain();
    return this.#taken !== before || this.#entries.pending;
  }

  /** For tests: while `body` runs nothing is taken but by {@link drain}. */
  async drive<T>(body: () => Promise<T>): Promise<T> {
    this.#drivers += 1;
    try {
      return await body();
    } finally {
      this.#drivers -= 1;
      if (this.#drivers === 0 && this.#missed) setImmediate(() => this.#called());
    }
  }

  /**
   * Calls in place: `run` begins one microtask later, and its outcome is the
   * promise's once it may leave. Undefined: take the ordinary way. When `signal`
   * fires the caller has its reason at once, and the function is told.
   */
  inPlace<T>(
    bag: ActorBag,
    run: (scope: CallScope) => T | Promise<T>,
    signal?: Stop,
  ): Promise<Awaited<T>> | undefined {
    if (bag.stopped !== undefined || signal?.aborted) return undefined;
    const number = native.admit(bag.actor);
    if (number === 0) return undefined;
    return new Promise((resolve, reject) => {
      this.#entries.push(held(bag, number, run, resolve, reject, signal));
    });
  }

  /**
   * The same for a call that has to wait its turn: `run` begins after everything
   * that was accepted before it. Nothing but its number crosses. Undefined: the
   * actor takes no work now.
   */
  queued<T>(
    bag: ActorBag,
    run: (scope: CallScope) => T | Promise<T>,
    signal?: Stop,
  ): Promise<Awaited<T>> | undefined {
    if (bag.stopped !== undefined || signal?.aborted) return undefined;
    const number = native.queue(bag.actor);
    if (number === 0) return undefined;
    // Kept with the open calls of the actor until BEGIN comes, by a wake-up that does not hold the
    // process.
    return new Promise((resolve, reject) => {
      this.#keepAlive.hold();
      held(bag, number, run, resolve, reject, signal).releases(this.#keepAlive);
    });
  }

  /** The state of an actor has changed. */
  changed(bag: ActorBag): void {
    this.#turns.changed(bag);
  }

  /** Something of an actor has changed that the end of the turn commits beside the state. */
  wrote(bag: ActorBag): void {
    this.#turns.wrote(bag);
  }

  /** What is in an actor's memory can never be stored, because of `thrown`. */
  breaks(bag: ActorBag, thrown: unknown): void {
    native.breakGeneration(bag.actor, encodeRecord(recordOf(thrown)));
  }

  /** Of which kinds the clients are that a broadcast of an actor would reach. */
  audience(bag: ActorBag, event: string): { readonly local: boolean; readonly remote: boolean } {
    const kinds = native.audience(bag.actor, event);
    return { local: (kinds & 1) !== 0, remote: (kinds & 2) !== 0 };
  }

  /** Sends an event to the clients of one kind that want it. */
  broadcast(bag: ActorBag, remote: boolean, event: string, args: Uint8Array): void {
    native.broadcastTo(bag.actor, remote, event, args);
  }

  /** Sends a message over a raw socket. False when the generation or the socket is over. */
  sendOver(bag: ActorBag, socket: number, bytes: Uint8Array, isText: boolean): boolean {
    return native.webSocketSend(bag.actor, socket, bytes, isText);
  }

  /** Closes a raw socket behind everything that was sent over it. False as above. */
  closeOver(bag: ActorBag, socket: number, code: number, reason: string): boolean {
    return native.webSocketClose(bag.actor, socket, code, reason);
  }

  /** The ids of an actor's connections. */
  connectionIds(bag: ActorBag): string[] {
    return bag.stopped === undefined ? native.connectionIds(bag.actor) : [];
  }

  /**
   * Whether an output of an actor, other than the answer to a call, has to wait:
   * undefined when it may leave at once, else what resolves when it may.
   */
  gate(bag: ActorBag): Promise<void> | undefined {
    const isStored = !bag.dirty && !bag.wrote && bag.inFlight === 0 && !bag.handedOver;
    if (!bag.factory.gated || (isStored && bag.statements === 0)) return undefined;
    return this.flush(bag);
  }

  /** Hands over what has changed and resolves when all so far is durable. */
  async flush(bag: ActorBag): Promise<void> {
    if (bag.stopped !== undefined) throw bag.stopped.error;
    if (bag.factory.gated || bag.wrote) this.#turns.push(bag);
    const { context } = bag;
    await this.#tickets.wait((ticket) => native.awaitFlushed(context, ticket));
  }

  /** Sends what Rust logs to `sink`, from `level` on; without one, nowhere. */
  setLog(level: LogLevel | undefined, sink?: (line: LogLine) => void): void {
    this.#log = sink;
    plainly(() =>
      native.setLogSink(this.#environment, sink === undefined ? null : (level ?? "info")),
    );
  }

  /** One function for all bags, of which there are many. */
  readonly #instance = (bag: ActorBag) => instanceOf(this.#environment, bag);

  /** There is something to take. */
  #called(): void {
    if (this.#drivers === 0) this.#drain();
    else this.#missed = true;
  }

  /** See (2): whatever goes wrong, what is left is taken after the loop has turned. */
  #drain(): void {
    let empty = false;
    try {
      this.#turns.end();
      const began = now();
      do {
        const batch = native.take(this.#environment);
        if (batch === null) {
          empty = true;
          break;
        }
        this.#taken += 1;
        this.#read(new Records(batch));
        this.#entries.run();
      } while (this.#byTurns || now() - began < BUDGET_MS);
    } finally {
      if (!empty) setImmediate(() => this.#drain());
    }
  }

  #read(records: Records): void {
    while (records.advance()) {
      try {
        this.#job(records);
      } catch (fault) {
        // One job's fault is not the others': they go on, and it is not hidden.
        setImmediate(() => {
          throw fault;
        });
      }
    }
  }

  #job(job: Records): void {
    switch (job.kind) {
      case Kind.SETTLED: {
        const failed = job.number(0) === 1;
        this.#tickets.settle(
          job.ticket,
          failed ? null : job.bytesOrNull(1),
          failed ? job.text(1) : undefined,
        );
        return;
      }
      case Kind.SESSION:
        this.#sessions.hear(job);
        return;
      case Kind.ASKED:
        this.http.applications.asked(job);
        return;
      case Kind.UNASKED:
        this.http.applications.unasked(job);
        return;
      case Kind.LOG:
        this.#logged(job);
        return;
      case Kind.START:
        this.#start(job);
        return;
      case Kind.FORGOTTEN:
        forget(job.number(0));
        return;
      default: {
        const bag = this.#bags.get(job.actor);
        if (bag !== undefined) this.#forActor(bag, job);
      }
    }
  }

  #forActor(bag: ActorBag, job: Records): void {
    const { ticket } = job;
    switch (job.kind) {
      case Kind.ACTION: {
        const caller = job.number(2) as CallerKind;
        this.#entries.push(
          new ActionEntry(
            this.#hooks,
            bag,
            ticket,
            job.text(0),
            job.bytes(1),
            caller,
            job.number(3),
          ),
        );
        return;
      }
      case Kind.FIRED: {
        const fire = JSON.parse(job.text(2)) as FireInfo;
        const [name, args] = [job.text(0), job.bytes(1)];
        this.#keepAlive.hold();
        const ended = () => this.#keepAlive.release();
        this.#entries.push(new FiredEntry(this.#hooks, bag, ticket, name, args, fire, ended));
        return;
      }
      case Kind.CONNECTION: {
        const [label, id] = [job.text(0), job.text(1)];
        const conn = bag.connections.ofHook(id, ticket);
        const payload = new ConnectionPayload(bag, conn, job.textOrNull(2), job.textOrNull(3));
        this.#entries.push(HookEntry.connection(this.#hooks, bag, ticket, label, payload));
        return;
      }
      case Kind.OVER: {
        const caller = job.number(2) as CallerKind;
        const conn = bag.connections.ofCall(job.text(4), ticket);
        const [name, args, origin] = [job.text(0), job.bytes(1), job.number(3)];
        this.#entries.push(
          new ActionEntry(this.#hooks, bag, ticket, name, args, caller, origin, undefined, conn),
        );
        return;
      }
      case Kind.BEGIN: {
        const call = bag.open.get(ticket);
        if (call instanceof InPlaceCall) this.#entries.push(call);
        return;
      }
      case Kind.HOOK: {
        const isNew = job.number(2) === 1;
        this.#entries.push(
          HookEntry.hook(this.#hooks, bag, ticket, job.text(0), job.bytesOrNull(1), isNew),
        );
        return;
      }
      case Kind.RUN:
        this.#entries.push(HookEntry.run(this.#hooks, bag, ticket));
        return;
      case Kind.SERIALIZE: {
        const inspector = job.number(0) === 1;
        const atOnce = bag.factory.callbacks.encodeState !== undefined;
        this.#entries.push(
          atOnce
            ? new SnapshotEntry(this.#hooks, bag, ticket, inspector)
            : HookEntry.serialize(this.#hooks, bag, ticket, inspector),
        );
        return;
      }
      case Kind.COMMITTED: {
        const error = job.textOrNull(1);
        this.#turns.committed(bag, job.number(0), error === null ? undefined : readRecord(error));
        return;
      }
      case Kind.CANCEL: {
        const error = job.textOrNull(1);
        const call = bag.open.get(ticket);
        if (error === null) call?.cancel(job.number(0) === 1);
        else call?.stop(fromRecord(readRecord(error)));
        return;
      }
      case Kind.ABORT:
        bag.abort(job.text(0) as "sleep" | "destroy");
        return;
      case Kind.STOPPED: {
        const error = job.textOrNull(1);
        this.#bags.delete(bag.actor);
        bag.stop(
          job.text(0) as StopOutcome,
          error === null ? undefined : fromRecord(readRecord(error)),
        );
        this.#turns.stopped(bag);
        return;
      }
      default:
        // DEADLINE: Rust gives up the hooks that still run; there is nothing to stop here.
        return;
    }
  }

  #start(job: Records): void {
    const factory = factoryOf(job.number(0));
    if (factory === undefined) throw new Error(`no factory has the number ${job.number(0)}`);
    const identity = JSON.parse(job.text(1)) as ActorIdentity;
    const bag = new ActorBag(this.#hooks, job.actor, identity, factory, this.#instance);
    this.#bags.set(job.actor, bag);
    this.#tickets.failures.forget(identity.actorId);
  }

  #logged(job: Records): void {
    this.#log?.({
      level: job.text(0) as LogLevel,
      target: job.text(1),
      message: job.text(2),
      fields: JSON.parse(job.text(3)) as Record<string, unknown>,
      lost: job.number(4),
    });
  }
}

/** A call whose answer is held here. */
function held<T>(
  bag: ActorBag,
  number: number,
  run: (scope: CallScope) => T | Promise<T>,
  resolve: (value: Awaited<T>) => void,
  reject: (error: unknown) => void,
  signal: Stop | undefined,
): InPlaceCall {
  const settle = resolve as (value: unknown) => void;
  const call = new InPlaceCall(native, bag, number, run, settle, reject);
  if (signal !== undefined) call.listen(signal);
  return call;
}
