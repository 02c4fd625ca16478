/**
 * `c.queue`: an actor's messages, as one context sees them.
 *
 * 1. No method throws: what is wrong with an argument is the promise's.
 * 2. While this context has messages to complete it receives no others; other contexts do.
 * 3. A wait ends when the signal fires, when the actor begins to stop, and in an action when nobody
 *    waits for that call any more: what nobody would see is not taken.
 * 4. Of what was received, the messages that their schema refuses are not handed out: one to complete
 *    is given back with the error, any other is gone. A call fails when nothing else came; `iter` goes
 *    on, since one message must not hold up those behind it.
 */

import type { Live } from "../actors/live";
import { written } from "../actors/written";
import type { Call } from "../calls/call";
import { decode } from "../codec";
import { describe } from "../definition/keys";
import { invalidArgument, isRivetErrorCode, messageOf, RivetError } from "../errors";
import { messages, type NativeQueue, type Received } from "../native-half";
import { refuseInside } from "../transaction/inside";
import type { QueueMessage, SentQueueMessage } from "../types";
import { type Awaited, type Party, unlessCircular } from "./circles";
import { Dead } from "./dead";
import { type Holder, Message } from "./message";
import {
  flagOf,
  idOf,
  plainly,
  readOptions,
  sendOptionsOf,
  signalOf,
  timeoutOf,
  wholeOf,
} from "./options";
import { bodyOf, bytesOf, notDeclared, responseOf, rulesOf } from "./rules";
import { withToken } from "./wait";

/** What is wanted of a queue. */
interface Wanted {
  readonly names: readonly string[];
  readonly count: number;
  readonly completable: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** What came of it. */
interface Taken {
  readonly handed: QueueMessage[];
  /** Why the last one that was refused was. */
  readonly refused: { readonly error: unknown } | undefined;
}

const wanted = ["names", "completable"];
const waiting = ["timeout", "signal"];

export class Messages implements Holder, Party {
  readonly live: Live;
  readonly call: Call | undefined;
  /** What this context has to complete (2). */
  readonly #open = new Set<Message>();
  readonly waitsFor = new Set<Awaited>();
  parked = 0;
  #native: NativeQueue | undefined;
  #dead: Dead | undefined;
  #isOver = false;

  constructor(live: Live, call: Call | undefined) {
    this.live = live;
    this.call = call;
  }

  get native(): NativeQueue {
    refuseInside(this.live, "queue");
    this.#native ??= this.live.queue;
    return this.#native;
  }

  get dead(): Dead {
    this.#dead ??= new Dead(() => this.native);
    return this.#dead;
  }

  get isOver(): boolean {
    return this.#isOver || this.call?.isReleased === true;
  }

  send(name: string, body: unknown, options?: object): Promise<SentQueueMessage> {
    return written(() => this.#send(name, body, options));
  }

  async #send(name: string, body: unknown, options?: object): Promise<SentQueueMessage> {
    const read = readOptions(options, "queue.send", ["dedupeKey", "delay"]);
    const how = sendOptionsOf(read, "queue.send");
    const bytes = bytesOf(rulesOf(this.live, name), name, body);
    // Not awaited where that is not needed: what one turn sends is stored together.
    const checked = bytes instanceof Uint8Array ? bytes : await bytes;
    const { id, createdAt } = await this.waits(
      plainly(messages.send(this.native, name, checked, how)),
    );
    return { id, name, createdAt };
  }

  enqueueAndWait(name: string, body: unknown, options?: object): Promise<unknown> {
    return written(() => this.#sendAndWait(name, body, options));
  }

  async #sendAndWait(name: string, body: unknown, options?: object): Promise<unknown> {
    const method = "queue.enqueueAndWait";
    const read = readOptions(options, method, waiting);
    const [timeoutMs, signal] = [timeoutOf(read, method), signalOf(read, method)];
    const bytes = bytesOf(rulesOf(this.live, name), name, body);
    const checked = bytes instanceof Uint8Array ? bytes : await bytes;
    const awaited = { live: this.live, name };
    const response = await unlessCircular(this, awaited, (circle) =>
      this.waits(
        withToken([signal, this.call?.signal, circle], (token) =>
          messages.sendAndWait(this.native, name, checked, { timeoutMs, token }),
        ),
      ),
    );
    return decode(response);
  }

  async next(options?: object): Promise<QueueMessage | undefined> {
    const read = readOptions(options, "queue.next", [...wanted, ...waiting]);
    return (await this.#receive(this.#wanted(read, "queue.next")))[0];
  }

  async nextBatch(options?: object): Promise<QueueMessage[]> {
    const read = readOptions(options, "queue.nextBatch", [...wanted, ...waiting, "count"]);
    return this.#receive(this.#wanted(read, "queue.nextBatch"));
  }

  async tryNext(options?: object): Promise<QueueMessage | undefined> {
    const read = readOptions(options, "queue.tryNext", wanted);
    return (await this.#receive(this.#wanted({ ...read, timeout: 0 }, "queue.tryNext")))[0];
  }

  async tryNextBatch(options?: object): Promise<QueueMessage[]> {
    const read = readOptions(options, "queue.tryNextBatch", [...wanted, "count"]);
    return this.#receive(this.#wanted({ ...read, timeout: 0 }, "queue.tryNextBatch"));
  }

  async waitForNames(names: readonly string[], options?: object): Promise<QueueMessage> {
    const method = "queue.waitForNames";
    const read = readOptions(options, method, [...waiting, "completable"]);
    const looked = this.#wanted({ ...read, names }, method);
    const [message] = await this.#receive(looked);
    if (message === undefined) throw timedOut(looked.timeoutMs);
    return message;
  }

  async waitForAvailable(names?: readonly string[], options?: object): Promise<void> {
    const method = "queue.waitForAvailable";
    const read = readOptions(options, method, waiting);
    const looked = this.#wanted({ ...read, names }, method);
    await this.#parked(looked, (token) =>
      messages.waitAvailable(this.native, looked.names, looked.timeoutMs, token),
    );
  }

  complete(message: { id: number | bigint; name: string }, response?: unknown): Promise<boolean> {
    return written(() => this.#complete(message, response));
  }

  async #complete(
    message: { id: number | bigint; name: string },
    response?: unknown,
  ): Promise<boolean> {
    if (typeof message !== "object" || message === null) {
      throw invalidArgument(`queue.complete() takes a message, not ${describe(message)}`);
    }
    const { name } = message;
    const id = idOf(message.id, "queue.complete");
    rulesOf(this.live, name);
    const given = this.response(name, response);
    const bytes = given instanceof Promise ? await given : given;
    const wasThere = await this.waits(plainly(messages.completeById(this.native, id, name, bytes)));
    for (const open of this.#open) if (open.id === id) Message.ended(open);
    return wasThere;
  }

  async *iter(options?: object): AsyncGenerator<QueueMessage, void, undefined> {
    const read = readOptions(options, "queue.iter", [...wanted, "signal"]);
    const looked = this.#wanted(read, "queue.iter");
    while (true) {
      let message: QueueMessage | undefined;
      try {
        [message] = (await this.#take(looked)).handed;
      } catch (error) {
        if (isRivetErrorCode(error, "actor", "aborted")) return;
        throw error;
      }
      if (message !== undefined) yield message;
    }
  }

  /** The function of this context failed: what it had to complete goes back. */
  async fail(error: unknown): Promise<void> {
    this.#isOver = true;
    const open = [...this.#open];
    await Promise.all(open.map((message) => message.nack({ error })));
  }

  /** The function of this context ended. */
  end(): void {
    this.#isOver = true;
    this.live.consumers?.delete(this);
  }

  response(
    name: string,
    response: unknown,
  ): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    return responseOf(this.live.definition.queues.get(name), name, response);
  }

  note(message: Message, isOpen: boolean): void {
    if (isOpen) this.#open.add(message);
    else this.#open.delete(message);
  }

  #wanted(read: Record<string, unknown>, method: string): Wanted {
    return {
      names: this.#names(read.names, method),
      count: wholeOf(read, "count", method, { least: 1, usual: 1 }),
      completable: flagOf(read, "completable", method),
      timeoutMs: timeoutOf(read, method),
      signal: signalOf(read, method),
    };
  }

  /** The names that are meant: those given, or all that are declared. */
  #names(names: unknown, method: string): readonly string[] {
    const { queues } = this.live.definition;
    if (names === undefined || (Array.isArray(names) && names.length === 0)) {
      if (queues.size === 0) throw notDeclared(this.live, undefined);
      return [...queues.keys()];
    }
    if (!Array.isArray(names)) {
      throw invalidArgument(`names of ${method}() is ${describe(names)}, not a list`);
    }
    for (const name of names) rulesOf(this.live, name);
    return names;
  }

  async #receive(looked: Wanted): Promise<QueueMessage[]> {
    const { handed, refused } = await this.#take(looked);
    if (refused !== undefined && handed.length === 0) throw refused.error;
    return handed;
  }

  async #take(looked: Wanted): Promise<Taken> {
    if (this.#open.size > 0) throw notCompleted(this.live, this.#open);
    this.live.consume(this);
    const { names, count, completable, timeoutMs } = looked;
    const received = await this.#parked(looked, (token) =>
      messages.receive(this.native, { names, count, completable, timeoutMs, token }),
    );
    return this.#handOut(received, completable);
  }

  /** Waits as a context that receives (3). */
  async #parked<T>(
    { timeoutMs, signal }: Wanted,
    wait: Parameters<typeof withToken<T>>[1],
  ): Promise<T> {
    const call = timeoutMs === 0 ? undefined : this.call?.signal;
    this.parked += 1;
    try {
      return await this.waits(withToken([signal, call], wait));
    } finally {
      this.parked -= 1;
    }
  }

  waits<T>(promise: Promise<T>): Promise<T> {
    return this.live.waits(promise, this.call);
  }

  /** See (4). */
  async #handOut(received: readonly Received[], completable: boolean): Promise<Taken> {
    const handed: QueueMessage[] = [];
    let refused: { readonly error: unknown } | undefined;
    for (const message of received) {
      const { id, name, createdAt, deliveries: deliveryCount } = message;
      const rules = this.live.definition.queues.get(name);
      try {
        const given = bodyOf(rules, name, message.body);
        const body = given instanceof Promise ? await given : given;
        handed.push(
          completable
            ? new Message(this, message, body)
            : { id, name, body, createdAt, deliveryCount },
        );
      } catch (error) {
        refused = { error };
        const msg = `a message of queue ${name} is not what its schema allows: ${messageOf(error)}`;
        this.live.log.error({ msg, queue: name, messageId: id, error });
        if (completable) {
          const { native } = this;
          // Without any pause it would come again at once, and again.
          const hasPause = rules?.backoff !== undefined && rules.backoff.initial > 0;
          const delay = hasPause ? undefined : pauseOf(deliveryCount);
          await plainly(messages.release(native, id, deliveryCount, delay, messageOf(error)));
        }
      }
    }
    return { handed, refused };
  }
}

/** How long a message that its schema refuses waits where its queue knows no pause, in milliseconds. */
function pauseOf(deliveryCount: number): number {
  return Math.min(1_000 * 2 ** (deliveryCount - 1), 60_000);
}

function notCompleted(live: Live, open: ReadonlySet<Message>): RivetError {
  const messageIds = [...open].map((message) => message.id);
  return new RivetError(
    "queue",
    "previous_message_not_completed",
    "the message that was received before is not completed: complete it, or give it back with nack()",
    { public: true, statusCode: 400, metadata: { messageIds }, actor: live.specifier },
  );
}

function timedOut(timeoutMs: number): RivetError {
  return new RivetError(
    "queue",
    "timed_out",
    `the queue wait timed out after ${Math.ceil(timeoutMs)} ms`,
    { public: true, statusCode: 400, metadata: { timeout_ms: Math.ceil(timeoutMs) } },
  );
}
