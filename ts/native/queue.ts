/**
 * What the contract's `Queue` and `QueueMessage` have beyond Rust: promises. What the
 * author's layer stands on is below them.
 *
 * 1. What a call changes is committed at the end of the turn in which it was made,
 *    together with everything else that the turn changed.
 * 2. Bytes that are handed in may be changed afterwards; those that come out are the
 *    receiver's own.
 * 3. A wait ends at the latest when its actor stops. It holds the process no more than
 *    the actor does: one that waits for messages waits for somebody to send them.
 */
import {
  type CancellationToken,
  Queue,
  QueueMessage,
  queueComplete,
  queueCompleteById,
  queueDead,
  queueDeadDelete,
  queueDeadRetry,
  queueMessage,
  queueMessageComplete,
  queueReceive,
  queueRelease,
  queueReset,
  queueSend,
  queueSendAndWait,
  queueWaitAvailable,
} from "../../index.js";
import { invalidArgument, invalidState, toBridge, unbridged } from "./errors.js";
import { bagOf, belongsTo, wrote } from "./owner.js";

/** What is wanted of a queue. */
export interface QueueReceiveOptions {
  /** The names; absent or empty for any. */
  readonly names?: readonly string[] | null | undefined;
  /** How many at most. Default 1; 0 counts as 1. */
  readonly count?: number | null | undefined;
  /** How long to wait, in milliseconds; absent for ever, 0 for one look. */
  readonly timeoutMs?: number | null | undefined;
  /** Whether the messages wait until they are completed. Default false. */
  readonly completable?: boolean | null | undefined;
}

/** How long to wait for a queue. */
export interface QueueWaitOptions {
  /** In milliseconds; absent for ever. */
  readonly timeoutMs?: number | null | undefined;
}

declare module "../../index.js" {
  interface Queue {
    /** Sends a message. Resolves when it is durable. */
    send(name: string, body: Uint8Array): Promise<QueueMessage>;
    /** Receives messages; none when the time is over. */
    nextBatch(
      options?: QueueReceiveOptions | null,
      token?: CancellationToken | null,
    ): Promise<QueueMessage[]>;
    /** Receives one message; null when the time is over. */
    next(
      options?: QueueReceiveOptions | null,
      token?: CancellationToken | null,
    ): Promise<QueueMessage | null>;
    /**
     * Would receive without waiting; nobody calls it. Always throws `napi.invalid_state`: a message
     * is handed out once that is durable, so `next` with a `timeoutMs` of 0 is the way to look.
     */
    tryNext(options?: QueueReceiveOptions | null): QueueMessage | null;
    /** As {@link tryNext}. */
    tryNextBatch(options?: QueueReceiveOptions | null): QueueMessage[];
    /** Receives one message; rejects with `queue.timed_out` when the time is over. */
    waitForNames(
      names: readonly string[],
      options?: QueueReceiveOptions | null,
      token?: CancellationToken | null,
    ): Promise<QueueMessage>;
    /** Resolves when a message of these names is there, and takes none. */
    waitForNamesAvailable(
      names: readonly string[],
      options?: QueueWaitOptions | null,
      token?: CancellationToken | null,
    ): Promise<void>;
    /** Sends a message and waits for the response of whoever completes it; null for none. */
    enqueueAndWait(
      name: string,
      body: Uint8Array,
      options?: QueueWaitOptions | null,
      token?: CancellationToken | null,
    ): Promise<Buffer | null>;
    /** Completes a message by its id; false when it is gone. */
    completePersisted(
      messageId: bigint,
      expectedName: string,
      response?: Uint8Array | null,
    ): Promise<boolean>;
    /** Throws away everything that waits. */
    reset(): Promise<void>;
  }
  interface QueueMessage {
    /** Completes the message. Resolves when that is durable. */
    complete(response?: Uint8Array | null): Promise<void>;
  }
}

const methods = {
  async send(this: Queue, name: string, body: Uint8Array): Promise<QueueMessage> {
    const { id, createdAt } = await send(this, name, body);
    const sent = queueMessage(this, id, name, body, createdAt, 0, false);
    return belongsTo(sent, bagOf(this));
  },
  async nextBatch(
    this: Queue,
    options?: QueueReceiveOptions | null,
    token?: CancellationToken | null,
  ): Promise<QueueMessage[]> {
    const { names, count, completable, timeoutMs } = options ?? {};
    const found = await receive(this, {
      names: names ?? [],
      count: count ?? 1,
      completable: completable ?? false,
      timeoutMs: timeoutOf(timeoutMs),
      token: token ?? undefined,
    });
    return found.map((message) => {
      const { id, name, body, createdAt, deliveries } = message;
      const made = queueMessage(this, id, name, body, createdAt, deliveries, completable ?? false);
      return belongsTo(made, bagOf(this));
    });
  },
  async next(
    this: Queue,
    options?: QueueReceiveOptions | null,
    token?: CancellationToken | null,
  ): Promise<QueueMessage | null> {
    return (await this.nextBatch({ ...options, count: 1 }, token))[0] ?? null;
  },
  tryNext(): never {
    throw notAtOnce();
  },
  tryNextBatch(): never {
    throw notAtOnce();
  },
  async waitForNames(
    this: Queue,
    names: readonly string[],
    options?: QueueReceiveOptions | null,
    token?: CancellationToken | null,
  ): Promise<QueueMessage> {
    const found = await this.nextBatch({ ...options, names, count: 1 }, token);
    const message = found[0];
    if (message === undefined) throw toBridge(timedOut(options?.timeoutMs ?? 0));
    return message;
  },
  async waitForNamesAvailable(
    this: Queue,
    names: readonly string[],
    options?: QueueWaitOptions | null,
    token?: CancellationToken | null,
  ): Promise<void> {
    await waitAvailable(this, names, timeoutOf(options?.timeoutMs), token ?? undefined);
  },
  async enqueueAndWait(
    this: Queue,
    name: string,
    body: Uint8Array,
    options?: QueueWaitOptions | null,
    token?: CancellationToken | null,
  ): Promise<Buffer | null> {
    const timeoutMs = timeoutOf(options?.timeoutMs);
    return sendAndWait(this, name, body, { timeoutMs, token: token ?? undefined });
  },
  async completePersisted(
    this: Queue,
    messageId: bigint,
    expectedName: string,
    response?: Uint8Array | null,
  ): Promise<boolean> {
    return completeById(this, Number(messageId), expectedName, response ?? undefined);
  },
  async reset(this: Queue): Promise<void> {
    await write(this, (ticket) => queueReset(this, ticket));
  },
};

const messageMethods = {
  async complete(this: QueueMessage, response?: Uint8Array | null): Promise<void> {
    const bag = bagOf(this);
    const start = (ticket: number) => queueMessageComplete(this, response ?? undefined, ticket);
    const done = bag.home.tickets.wait(start, { bridged: true });
    bag.home.turns.wrote(bag);
    try {
      await done;
    } catch (error) {
      const { code } = unbridged(error) as { code?: unknown };
      if (code !== "already_completed") throw error;
      throw invalidState("queue message", "already completed");
    }
  },
};

// Once, also where this module is loaded twice in one environment.
if (!Object.hasOwn(Queue.prototype, "nextBatch")) {
  Object.assign(Queue.prototype, methods);
  Object.assign(QueueMessage.prototype, messageMethods);
}

/** A message as it was received. */
export interface Received {
  readonly id: number;
  readonly name: string;
  readonly body: Buffer;
  /** When it was sent, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** How often it has been handed out, this time included. */
  readonly deliveries: number;
}

/** A message that was given up. */
export interface DeadLetter extends Received {
  /** When it was given up, in milliseconds since the epoch. */
  readonly diedAt: number;
  /** What its last consumer said against it. */
  readonly error: string;
}

/** How a message is sent. */
export interface SendOptions {
  /** How long it waits before it may be received, in milliseconds. */
  readonly delayMs?: number | undefined;
  /** Of all messages of the name that are sent under it the first one counts. */
  readonly dedupeKey?: string | undefined;
}

/** How long something is waited for. */
export interface WaitFor {
  /** In milliseconds; negative for ever. */
  readonly timeoutMs: number;
  /** Ends the wait when it is cancelled. */
  readonly token?: CancellationToken | undefined;
}

/** Sends a message; resolves when it is durable, with its id or that of the first of its key. */
export async function send(
  queue: Queue,
  name: string,
  body: Uint8Array,
  { delayMs = 0, dedupeKey }: SendOptions = {},
): Promise<{ id: number; createdAt: number }> {
  const sent = (await write(queue, (ticket) =>
    queueSend(queue, name, body, delayMs, dedupeKey ?? null, ticket),
  )) as Uint8Array;
  const view = new DataView(sent.buffer, sent.byteOffset, sent.byteLength);
  return { id: view.getFloat64(0, true), createdAt: view.getFloat64(8, true) };
}

/** Sends a message and waits for its response; null for one without. */
export async function sendAndWait(
  queue: Queue,
  name: string,
  body: Uint8Array,
  { delayMs = 0, dedupeKey, timeoutMs, token }: SendOptions & WaitFor,
): Promise<Buffer | null> {
  const bag = bagOf(queue);
  const start = (ticket: number) =>
    queueSendAndWait(
      queue,
      name,
      body,
      delayMs,
      dedupeKey ?? null,
      timeoutMs,
      token ?? null,
      ticket,
    );
  const answered = bag.home.tickets.wait(start, { bridged: true, holds: false });
  bag.home.turns.wrote(bag);
  const response = await answered;
  return response === null ? null : bufferOf(response);
}

/** Receives messages; none when the time is over. */
export async function receive(
  queue: Queue,
  wanted: WaitFor & {
    readonly names: readonly string[];
    readonly count: number;
    readonly completable: boolean;
  },
): Promise<Received[]> {
  const { names, count, completable, timeoutMs, token } = wanted;
  const start = (ticket: number) =>
    queueReceive(queue, [...names], count, completable, timeoutMs, token ?? null, ticket);
  // One look ends by itself.
  const holds = timeoutMs === 0;
  return unpack(await bagOf(queue).home.tickets.wait(start, { bridged: true, holds }));
}

/** Resolves when a message of these names is there. */
export async function waitAvailable(
  queue: Queue,
  names: readonly string[],
  timeoutMs: number,
  token: CancellationToken | undefined,
): Promise<void> {
  const start = (ticket: number) =>
    queueWaitAvailable(queue, [...names], timeoutMs, token ?? null, ticket);
  await bagOf(queue).home.tickets.wait(start, { bridged: true, holds: false });
}

/** Completes a delivery; resolves when that is durable. */
export async function complete(
  queue: Queue,
  id: number,
  deliveries: number,
  response: Uint8Array | undefined,
): Promise<void> {
  await write(queue, (ticket) => queueComplete(queue, id, deliveries, response ?? null, ticket));
}

/** Gives a delivery back; without a delay, as the policy of its name says. */
export async function release(
  queue: Queue,
  id: number,
  deliveries: number,
  delayMs: number | undefined,
  error: string | undefined,
): Promise<void> {
  await write(queue, (ticket) =>
    queueRelease(queue, id, deliveries, delayMs ?? -1, error ?? null, ticket),
  );
}

/** Completes a message, whoever has it; says whether it was there. */
export async function completeById(
  queue: Queue,
  id: number,
  name: string,
  response: Uint8Array | undefined,
): Promise<boolean> {
  const done = await write(queue, (ticket) =>
    queueCompleteById(queue, id, name, response ?? null, ticket),
  );
  return done?.[0] === 1;
}

/** At most `limit` messages that were given up with an id behind `after`. */
export async function listDead(queue: Queue, after: number, limit: number): Promise<DeadLetter[]> {
  const start = (ticket: number) => queueDead(queue, after, limit, ticket);
  return unpackDead(await bagOf(queue).home.tickets.wait(start, { bridged: true }));
}

/** Lets a message that was given up wait again; says whether it was there. */
export async function retryDead(queue: Queue, id: number): Promise<boolean> {
  const done = await write(queue, (ticket) => queueDeadRetry(queue, id, ticket));
  return done?.[0] === 1;
}

/** Throws away a message that was given up; says whether it was there. */
export async function deleteDead(queue: Queue, id: number): Promise<boolean> {
  const done = await write(queue, (ticket) => queueDeadDelete(queue, id, ticket));
  return done?.[0] === 1;
}

function write(queue: Queue, start: (ticket: number) => void): Promise<Uint8Array | null> {
  const bag = bagOf(queue);
  const written = bag.home.tickets.wait(start, { bridged: true });
  wrote(queue);
  return written;
}

/** A time to wait as the contract's callers say it. */
function timeoutOf(timeoutMs: number | null | undefined): number {
  if (timeoutMs === undefined || timeoutMs === null) return -1;
  if (typeof timeoutMs === "number" && timeoutMs >= 0) return timeoutMs;
  throw invalidArgument("timeoutMs", `${String(timeoutMs)} is not milliseconds from 0`);
}

function notAtOnce(): Error {
  return invalidState("queue", "messages are handed out once that is durable, and not at once");
}

function timedOut(timeoutMs: number) {
  return {
    group: "queue",
    code: "timed_out",
    message: `the queue wait timed out after ${timeoutMs} ms`,
    metadata: { timeout_ms: timeoutMs },
    public: true,
    statusCode: 400,
  };
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Reads packed parts one after the other. */
class Unpacker {
  readonly #all: Buffer;
  #at = 0;

  constructor(packed: Uint8Array | null) {
    this.#all = packed === null ? Buffer.alloc(0) : bufferOf(packed);
  }

  get done(): boolean {
    return this.#at >= this.#all.length;
  }

  float(): number {
    this.#at += 8;
    return this.#all.readDoubleLE(this.#at - 8);
  }

  count(): number {
    this.#at += 4;
    return this.#all.readUInt32LE(this.#at - 4);
  }

  text(): string {
    const length = this.count();
    this.#at += length;
    return this.#all.toString("utf8", this.#at - length, this.#at);
  }

  /** A copy: one part that is kept must not keep all others (2). */
  bytes(): Buffer {
    const length = this.count();
    this.#at += length;
    return Buffer.from(this.#all.subarray(this.#at - length, this.#at));
  }
}

function unpack(packed: Uint8Array | null): Received[] {
  const parts = new Unpacker(packed);
  const messages: Received[] = [];
  while (!parts.done) {
    const [id, createdAt, deliveries] = [parts.float(), parts.float(), parts.count()];
    messages.push({ id, createdAt, deliveries, name: parts.text(), body: parts.bytes() });
  }
  return messages;
}

function unpackDead(packed: Uint8Array | null): DeadLetter[] {
  const parts = new Unpacker(packed);
  const messages: DeadLetter[] = [];
  while (!parts.done) {
    const [id, createdAt, diedAt] = [parts.float(), parts.float(), parts.float()];
    const deliveries = parts.count();
    const [name, body, error] = [parts.text(), parts.bytes(), parts.text()];
    messages.push({ id, createdAt, diedAt, deliveries, name, body, error });
  }
  return messages;
}
