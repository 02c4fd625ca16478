/**
 * Running actions for jobs that were taken. Each call is answered exactly once.
 */
import { setMaxListeners } from "node:events";
import type { ActorContext, CancellationToken, ConnHandle } from "../../index.js";
import type { ActorBag } from "./bags.js";
import { bytesOf } from "./delta.js";
import type { Entry } from "./entries.js";
import { encodeRecord, type RivetError, recordOf } from "./errors.js";
import type { Callback } from "./factory.js";
import { type CallerKind, type HookHost, JOB_WEIGHT } from "./hooks.js";
import { invokedBy } from "./invocation.js";
import type { OpenCall } from "./open-calls.js";
import type { FireInfo } from "./schedule.js";
import { whenSettled } from "./settle.js";
import { newToken } from "./token.js";

/** Runs an action that came the ordinary way. */
export class ActionEntry implements Entry, OpenCall {
  readonly weight = JOB_WEIGHT;
  readonly #host: HookHost;
  readonly #bag: ActorBag;
  readonly #call: number;
  readonly #name: string;
  readonly #origin: number;
  readonly #payload: ActionPayload;
  #ended = false;

  constructor(
    host: HookHost,
    bag: ActorBag,
    call: number,
    name: string,
    args: Uint8Array,
    caller: CallerKind,
    origin: number,
    fire?: FireInfo,
    conn?: ConnHandle,
  ) {
    this.#host = host;
    this.#bag = bag;
    this.#call = call;
    this.#name = name;
    this.#origin = origin;
    this.#payload = new ActionPayload(bag, args, caller, fire, conn ?? null);
    bag.open.set(call, this);
  }

  begin(): void {
    if (this.#payload.cancelled) {
      this.#end(true, this.#bag.stoppedError());
      return;
    }
    let given: unknown;
    try {
      const action = this.#action();
      if (action === undefined) {
        this.#end(true, notFound(this.#name));
        return;
      }
      given = action(null, this.#payload);
    } catch (thrown) {
      this.#end(true, thrown);
      return;
    }
    whenSettled(
      given,
      (value) => this.#answered(value),
      (thrown) => this.#end(true, thrown),
    );
  }

  /** Has the contract's `onBeforeActionResponse` make the answer, which has as much time as the action had. */
  #answered(value: unknown): void {
    const before = this.#bag.factory.callbacks.onBeforeActionResponse as
      | Callback<AnswerPayload>
      | undefined;
    const asks = before !== undefined && isAction(this.#name);
    if (!asks || !this.#host.native.renewCall(this.#bag.actor, this.#call)) {
      this.#end(false, value);
      return;
    }
    let made: unknown;
    try {
      const output = bufferOf(bytesOf(value) ?? NOTHING);
      made = before(null, new AnswerPayload(this.#payload, this.#name, output));
    } catch (thrown) {
      this.#end(true, thrown);
      return;
    }
    whenSettled(
      made,
      (value) => this.#end(false, value),
      (thrown) => this.#end(true, thrown),
    );
  }

  cancel(): void {
    this.#payload.cancel();
  }

  stop(_: RivetError): void {
    this.#payload.cancel();
  }

  #action(): Callback<ActionPayload> | undefined {
    const { actions } = this.#bag.factory.callbacks;
    if (actions === undefined || !Object.hasOwn(actions, this.#name)) return undefined;
    return actions[this.#name] as Callback<ActionPayload> | undefined;
  }

  #end(failed: boolean, outcome: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#bag.open.delete(this.#call);
    const { native, tickets } = this.#host;
    let bytes: Uint8Array | undefined;
    if (!failed) {
      try {
        bytes = bytesOf(outcome);
      } catch (thrown) {
        failed = true;
        outcome = thrown;
      }
    }
    // Before Rust hears of it, which may answer at once.
    if (this.#origin !== 0 && this.#bag.factory.gated) this.#bag.keepPlace(this.#origin);
    if (failed) {
      if (this.#origin !== 0) tickets.threw(this.#origin, outcome);
      native.finishCall(this.#bag.actor, this.#call, 1, encodeRecord(recordOf(outcome)));
    } else {
      native.finishCall(this.#bag.actor, this.#call, 0, bytes);
    }
    this.#payload.end();
    this.over();
  }

  /** Its function ended. */
  protected over(): void {}
}

/**
 * Runs an action because of a schedule. Nobody waits for it, so it holds the process itself: what
 * was taken is not to be cut short because nothing else is left to do. `ended` is told once.
 */
export class FiredEntry extends ActionEntry {
  readonly #ended: () => void;
  #told = false;

  constructor(
    host: HookHost,
    bag: ActorBag,
    call: number,
    name: string,
    args: Uint8Array,
    fire: FireInfo,
    ended: () => void,
  ) {
    super(host, bag, call, name, args, BY_SCHEDULE, 0, fire);
    this.#ended = ended;
  }

  override stop(error: RivetError): void {
    super.stop(error);
    this.over();
  }

  protected override over(): void {
    if (this.#told) return;
    this.#told = true;
    this.#ended();
  }
}

/** The kind of caller that a schedule is. */
const BY_SCHEDULE: CallerKind = 3;

const NOTHING = Buffer.alloc(0);

/** Whether a call is one of an author's action: requests and the like come under names that none can have. */
function isAction(name: string): boolean {
  return name.charCodeAt(0) >= 0x20;
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** What an action answers, and may still be changed. */
export class AnswerPayload {
  readonly name: string;
  readonly output: Buffer;
  readonly #action: ActionPayload;

  constructor(action: ActionPayload, name: string, output: Buffer) {
    this.#action = action;
    this.name = name;
    this.output = output;
  }

  get ctx(): ActorContext {
    return this.#action.ctx;
  }

  get bag(): ActorBag {
    return this.#action.bag;
  }

  get args(): Uint8Array {
    return this.#action.args;
  }
}

/** The payload of an action. What costs something is made at the first look. */
export class ActionPayload {
  readonly bag: ActorBag;
  readonly args: Uint8Array;
  readonly caller: CallerKind;
  /** Set for a call over a connection. */
  readonly conn: ConnHandle | null;
  /** Set for a call of a schedule. */
  readonly fire: FireInfo | undefined;
  cancelled = false;
  #abort: AbortController | undefined;
  #token: CancellationToken | undefined;
  #ctx: ActorContext | undefined;

  constructor(
    bag: ActorBag,
    args: Uint8Array,
    caller: CallerKind,
    fire: FireInfo | undefined,
    conn: ConnHandle | null,
  ) {
    this.bag = bag;
    this.conn = conn;
    this.args = args;
    this.caller = caller;
    this.fire = fire;
  }

  /** Why a schedule calls, as the contract has it: without the number of the attempt. */
  get scheduledFire(): Omit<FireInfo, "attempt"> | undefined {
    if (this.fire === undefined) return undefined;
    const { attempt: _, ...fire } = this.fire;
    return fire;
  }

  /** One of its own, made when it is first looked at. */
  get ctx(): ActorContext {
    this.#ctx ??= invokedBy(this.bag, this.conn);
    return this.#ctx;
  }

  /** Fires when the call ended, timed out, or its caller gave up. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      setMaxListeners(0, this.#abort.signal);
      if (this.cancelled) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  /** The same, as the contract has it. */
  get cancelToken(): CancellationToken {
    if (this.#token === undefined) {
      this.#token = newToken();
      if (this.cancelled) this.#token.cancel();
    }
    return this.#token;
  }

  cancel(): void {
    if (this.cancelled) return;
    this.cancelled = true;
    this.#abort?.abort();
    this.#token?.cancel();
  }

  /** The call is over: whoever holds the payload learns that. */
  end(): void {
    this.cancel();
    if (this.#ctx !== undefined) this.bag.letGo(this.#ctx);
  }
}

function notFound(name: string) {
  return {
    __type: "RivetError",
    group: "actor",
    code: "action_not_found",
    message: `Action \`${name}\` was not found.`,
    public: true,
    statusCode: 404,
  };
}
