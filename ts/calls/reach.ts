/**
 * How a handle reaches its actor: in place when it lives in this environment and can be admitted,
 * queued by its number when it lives here and is busy, else the ordinary way, with bytes.
 *
 * 1. A call never throws synchronously, and no author code runs before its promise is returned.
 * 2. Arguments are copied before the call is admitted, results when the function ends; both ways
 *    refuse the same values with the same path.
 * 3. Beyond a depth of {@link MAX_DEPTH} a call is not made in place: it waits for the event loop.
 * 4. Calls of one handle leave in the order in which they were made: while one is held up, later
 *    ones queue behind it.
 * 5. What an actor changed before it calls another one is durable before the call leaves.
 */

import { actionNotFound, runAction, throughBoundary } from "../actors/action";
import { INTERNAL_MARK, liveOf } from "../actors/adapter";
import { Context } from "../actors/context";
import type { Live } from "../actors/live";
import { copy, decode, encode } from "../codec";
import { decodeInput, encodeInput } from "../codec/input";
import type { Definition } from "../definition";
import { readingArgument } from "../errors";
import {
  type Bag,
  type CallScope,
  callerKind,
  crossing,
  dispatch,
  EitherSignal,
  type Host,
  type Row,
  type Session,
  type SessionListener,
  type Stop,
  type Target,
} from "../native-half";
import type { Messages } from "../queue";
import type { Awaited } from "../queue/circles";
import { runSend, type SendArguments } from "../queue/send";
import { validate } from "../schema";
import { insideOf } from "../transaction/inside";
import { awaited, type Ends, passed, through } from "./awaited";
import { Call, MAX_DEPTH } from "./call";
import { Departures, mayLeave, unlessAborted } from "./departures";
import type { Callee } from "./members";

/** From where a client calls. */
export interface Origin {
  /** The host, or how to get it. */
  readonly host: Host | (() => Promise<Host>);
  /** The actor that calls; `undefined` for code outside of any. */
  readonly live: Live | undefined;
  /** The call inside which it calls. */
  readonly call: Call | undefined;
  /** The context with which it calls. */
  readonly from: Context | undefined;
}

/** What a handle was made with. */
export interface Reached {
  readonly target: Target;
  /** The definition in this process, if there is one. */
  readonly definition: Definition | undefined;
  /** What the actor is created with, where the handle creates it. */
  readonly input: unknown;
  /** Encoded parameters, where its calls have connections of their own. */
  readonly params?: (() => Promise<Uint8Array>) | undefined;
  readonly signal: AbortSignal | undefined;
}

export class Reach implements Callee {
  readonly #origin: () => Origin;
  readonly #reached: Reached;
  readonly #departures = new Departures();
  #bag: Bag | undefined;

  constructor(origin: () => Origin, reached: Reached) {
    this.#origin = origin;
    this.#reached = reached;
  }

  /** Which actor is meant. */
  get target(): Target {
    return this.#reached.target;
  }

  /** What its connections pass, if anything. */
  get params(): (() => Promise<Uint8Array>) | undefined {
    return this.#reached.params;
  }

  get signal(): AbortSignal | undefined {
    return this.#reached.signal;
  }

  /** From where it calls now. */
  get origin(): Origin {
    return this.#origin();
  }

  /** The host, once it is open, what the caller changed is durable, and the actor is there. */
  async arrive(): Promise<Host> {
    const { host, live, call } = this.#origin();
    if (live !== undefined) await mayLeave(live, call);
    const opened = typeof host === "function" ? await host() : host;
    if (this.#reached.input !== undefined) await this.#ensure(opened);
    return opened;
  }

  /** Opens a session with the actor. */
  open(host: Host, params: Uint8Array, listener: SessionListener): Session {
    return host.connect(this.#reached.target, params, true, listener);
  }

  /** Calls an action. */
  call(name: string, args: readonly unknown[], signal: Stop | undefined): Promise<unknown> {
    try {
      const origin = this.#origin();
      const answer = this.#call(origin, name, args, signal);
      return origin.live === undefined ? answer : origin.live.waits(answer, origin.call);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #call(
    origin: Origin,
    name: string,
    args: readonly unknown[],
    signal: Stop | undefined,
  ): Promise<unknown> {
    const stop = either(signal, this.#reached.signal);
    if (stop?.aborted) return Promise.reject(stop.reason);
    const { host, live } = origin;
    const gate =
      live === undefined || (isSelf(this.#reached.target, live) && insideOf(live) === undefined)
        ? undefined
        : mayLeave(live, origin.call);
    const { params } = this.#reached;
    const isPlain = params === undefined && this.#departures.none;
    if (typeof host !== "function" && gate === undefined && isPlain) {
      const answer = this.#callHere(host, origin, name, args, stop, undefined);
      if (answer !== undefined) return answer;
      if (this.#reached.input === undefined) {
        return this.#submit(
          host,
          origin,
          name,
          readingArgument(() => encode(args, "args")),
          stop,
          undefined,
        );
      }
    }
    // Now, because the caller may change them meanwhile.
    const copied = readingArgument(() => copy(args, "args"));
    return this.#departures.depart(stop, async () => {
      await gate;
      const opened = typeof host === "function" ? await host() : host;
      if (this.#reached.input !== undefined) await this.#ensure(opened);
      const passed = params === undefined ? undefined : await params();
      return (ends) => this.#callAt(opened, origin, name, copied, passed, stop, ends);
    });
  }

  /** The context of an actor that would wait for a queue, and that queue; `undefined` outside of any. */
  waiting(name: string): { party: Messages; awaited: Awaited } | undefined {
    const { from } = this.#origin();
    if (from === undefined) return undefined;
    const live = (): Live | undefined => {
      const { host } = this.#origin();
      const bag = typeof host === "function" ? undefined : this.#live(host);
      return bag && liveOf(bag);
    };
    const awaited = {
      name,
      get live() {
        return live();
      },
    };
    return { party: from.queue, awaited };
  }

  /** The row of the actor, which is created when the handle says so. */
  async resolve(): Promise<Row> {
    const { host } = this.#origin();
    const { signal } = this.#reached;
    signal?.throwIfAborted();
    const found = async (): Promise<Row> =>
      this.#ensure(typeof host === "function" ? await host() : host);
    return unlessAborted(found(), signal);
  }

  #callAt(
    host: Host,
    origin: Origin,
    name: string,
    args: readonly unknown[],
    params: Uint8Array | undefined,
    signal: Stop | undefined,
    ends: Ends,
  ): void {
    if (params !== undefined) {
      checkUnmarked(name);
      const bytes = readingArgument(() => encode(args, "args"));
      const caller = callerKind(origin.live === undefined ? "local" : "actor");
      const { target } = this.#reached;
      const answer = host.submitConnected(target, params, name, bytes, caller, signal);
      void through(answer, decode, crossed, ends);
      return;
    }
    if (this.#callHere(host, origin, name, args, signal, ends) !== undefined) return;
    const bytes = readingArgument(() => encode(args, "args"));
    this.#submit(host, origin, name, bytes, signal, ends);
  }

  /**
   * Calls an actor that lives in this environment; `undefined` when it does not, or takes no work. The
   * answer goes to `ends`, where there are some.
   */
  #callHere(
    host: Host,
    origin: Origin,
    name: string,
    args: readonly unknown[],
    signal: Stop | undefined,
    ends: Ends | undefined,
  ): Promise<unknown> | undefined {
    const bag = this.#live(host);
    const live = bag && liveOf(bag);
    if (bag === undefined || live === undefined) return undefined;
    const internal = origin.live === live;
    // Answered by whoever serves it: that may be a generation of other code, which this one makes
    // room for.
    if (name !== crossing.SEND && live.definition.action(name, internal) === undefined)
      return undefined;
    const given = readingArgument(() => copy(args, "args")) as unknown[];
    const caller = origin.live === undefined ? "local" : "actor";
    // Whoever waits its turn is on nobody's stack of calls, so depth begins anew.
    let parent: Call | undefined;
    const run = (scope: CallScope): Promise<unknown> => {
      const call = new Call(live, caller, parent, scope, origin.from);
      if (name === crossing.SEND) {
        return runSend(live, call, given as SendArguments, () => new Context(live, call));
      }
      return runAction(live, call, name, internal, given, (output) => copy(output, "result"));
    };
    if ((origin.call?.depth ?? 0) < MAX_DEPTH) {
      parent = origin.call;
      const answer = dispatch.inPlace(bag, run, signal);
      if (answer !== undefined) return awaited(answer, ends);
      parent = undefined;
    }
    const answer = dispatch.queued(bag, run, signal);
    return answer && passed(answer, ends);
  }

  #submit(
    host: Host,
    origin: Origin,
    name: string,
    args: Uint8Array,
    signal: Stop | undefined,
    ends: Ends | undefined,
  ): Promise<unknown> {
    const { target, definition } = this.#reached;
    checkUnmarked(name);
    const toSelf = origin.live !== undefined && isSelf(target, origin.live);
    const internal = toSelf && definition?.internalActions.has(name) === true;
    const caller = callerKind(origin.live === undefined ? "local" : "actor");
    const answer = host.submit(
      target,
      internal ? INTERNAL_MARK + name : name,
      args,
      caller,
      signal === undefined ? undefined : { signal },
    );
    return through(answer, decode, crossed, ends);
  }

  /** The generation that lives in this environment. */
  #live(host: Host): Bag | undefined {
    if (this.#bag === undefined || this.#bag.stopped !== undefined) {
      this.#bag = host.live(this.#reached.target);
    }
    return this.#bag;
  }

  async #ensure(host: Host): Promise<Row> {
    const { target, definition, input } = this.#reached;
    const create = "create" in target && target.create === true;
    const bytes = create ? await readInput(definition, input) : null;
    return host.ensure(target, create ? "getOrCreate" : "get", bytes ?? undefined);
  }
}

/** The bytes of an input, refused before the actor is created where it is wrong. */
export async function readInput(
  definition: Definition | undefined,
  input: unknown,
): Promise<Uint8Array | null> {
  const bytes = input === undefined ? null : readingArgument(() => encodeInput(input));
  // The actor checks again: it also has creators that are not here.
  if (definition?.inputSchema !== undefined) {
    await validate(definition.inputSchema, decodeInput(bytes), "input");
  }
  return bytes;
}

/** The mark is this layer's word that the actor calls itself, and nobody else's. */
export function checkUnmarked(name: string): void {
  if (name.startsWith(INTERNAL_MARK)) throw actionNotFound(name, undefined);
}

/** What the caller of another way gets. */
function crossed(error: unknown): never {
  throw throughBoundary(error);
}

function isSelf(target: Target, live: Live): boolean {
  const { actorId, name, key } = live.bag.identity;
  if ("id" in target) return target.id === actorId;
  return (
    target.name === name &&
    target.key.length === key.length &&
    target.key.every((part, at) => part === key[at])
  );
}

/** What either of two signals ends. */
export function either(a: Stop | undefined, b: Stop | undefined): Stop | undefined {
  if (a === undefined || b === undefined || a === b) return a ?? b;
  return new EitherSignal(a, b);
}
