/** An actor's queues, as types. */

import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { ActionContext } from "./context";

/** The key of what exists for the compiler only. */
declare const queueTypes: unique symbol;

/** What is known of a queue's types. */
interface QueueTypes {
  /** What is sent. */
  readonly sent: unknown;
  /** What is received: what the schema made of it. */
  readonly received: unknown;
  /** What a consumer answers. */
  readonly answered: unknown;
  /** What the sender gets: what the schema made of the answer. */
  readonly response: unknown;
}

/** Pauses that double. */
export interface QueueBackoff {
  /** The pause after the first delivery, in milliseconds from 0. */
  initial: number;
  /** The longest pause, in milliseconds, not below the first. */
  max: number;
}

/** What is given to `queue()`. */
export interface QueueOptions<Sent = unknown, M = unknown, Answered = unknown, R = unknown> {
  /** Checks a message when it is sent and when it is received, and may change what is received. */
  message?: StandardSchemaV1<Sent, M> | undefined;
  /** Checks and may change the response of whoever completes a message. */
  complete?: StandardSchemaV1<Answered, R> | undefined;
  /**
   * Whether a client may send to the queue: `false` refuses with `auth.forbidden`. Callers in this
   * process are trusted and not asked about.
   */
  canPublish?: ((c: ActionContext) => boolean | Promise<boolean>) | undefined;
  /** After how many deliveries a message that nobody completed is given up. Default never. */
  maxDeliveries?: number | undefined;
  /** How long a message waits after a delivery that was not completed. Default not at all. */
  backoff?: QueueBackoff | undefined;
}

/** A queue that was declared with `queue()`. */
export interface QueueSchema<T extends QueueTypes = QueueTypes> extends QueueOptions {
  /** For the compiler only. */
  readonly [queueTypes]?: T;
}

/** A queue of an actor: what `queue()` returns, its options, or the schema of its messages. */
export type QueueConfig = QueueSchema | QueueOptions | StandardSchemaV1;

/** What may be given as `queues` of an actor. */
export type QueueConfigs<Q> = {
  readonly [K in keyof Q]: Q[K] extends object ? QueueConfig : never;
};

/** The types of a queue as it was declared. */
type TypesOfQueue<E> = E extends StandardSchemaV1
  ? {
      sent: StandardSchemaV1.InferInput<E>;
      received: StandardSchemaV1.InferOutput<E>;
      answered: never;
      response: never;
    }
  : E extends { readonly [queueTypes]?: infer T }
    ? [Extract<T, QueueTypes>] extends [never]
      ? TypesOfOptions<E>
      : unknown extends T
        ? TypesOfOptions<E>
        : Extract<T, QueueTypes>
    : TypesOfOptions<E>;

interface TypesOfOptions<E> extends QueueTypes {
  sent: E extends { message: infer S extends StandardSchemaV1 }
    ? StandardSchemaV1.InferInput<S>
    : unknown;
  received: E extends { message: infer S extends StandardSchemaV1 }
    ? StandardSchemaV1.InferOutput<S>
    : unknown;
  answered: E extends { complete: infer S extends StandardSchemaV1 }
    ? StandardSchemaV1.InferInput<S>
    : never;
  response: E extends { complete: infer S extends StandardSchemaV1 }
    ? StandardSchemaV1.InferOutput<S>
    : never;
}

/** The types of all queues of an actor, by name. */
export type TypesOfQueues<Q> = { readonly [K in keyof Q & string]: TypesOfQueue<Q[K]> };

/** Any types of queues. */
type AnyQueueTypes<T> = { readonly [K in keyof T]: QueueTypes };

/** A message as it was received. */
export interface QueueMessage<N extends string = string, M = unknown> {
  /** From 1 on; ids grow and are never used again. */
  readonly id: number;
  /** The queue that it was sent to. */
  readonly name: N;
  /** What was sent. */
  readonly body: M;
  /** When it was sent, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** How often it has been received, this time included. */
  readonly deliveryCount: number;
}

/** How a message is given back. */
export interface QueueNackOptions {
  /** How long it waits, in milliseconds from 0. Default as its queue says. */
  delay?: number | undefined;
  /** What is wrong with it: kept for `c.queue.dead`. */
  error?: unknown;
}

/** A message that waits until it is completed. */
export interface OpenQueueMessage<N extends string = string, M = unknown, A = unknown>
  extends QueueMessage<N, M> {
  /**
   * Completes the message, with the response for a sender that waits. Resolves when that is durable.
   *
   * @throws rejects with `queue.already_completed`, and with `actor.validation_error` where the schema
   * refuses the response: the message stays open then.
   */
  complete(
    ...response: [A] extends [never] ? [] : undefined extends A ? [response?: A] : [response: A]
  ): Promise<void>;
  /**
   * Gives the message back, to be received again, or given up after the last delivery that its queue
   * allows. Resolves when that is durable.
   *
   * @throws rejects with `queue.already_completed`
   */
  nack(options?: QueueNackOptions): Promise<void>;
}

/** A message of one of the given queues; open when it was received with `completable`. */
export type QueueMessageAs<
  T extends AnyQueueTypes<T>,
  N extends keyof T & string,
  C extends boolean = false,
> = {
  [K in N]: C extends true
    ? OpenQueueMessage<K, T[K]["received"], T[K]["answered"]>
    : QueueMessage<K, T[K]["received"]>;
}[N];

/** What was stored of a message that was sent. */
export interface SentQueueMessage<N extends string = string> {
  /** The message, or the first one of the same `dedupeKey`. */
  readonly id: number;
  /** The queue. */
  readonly name: N;
  /** When that one was sent, in milliseconds since the epoch. */
  readonly createdAt: number;
}

/** How a message is sent. */
export interface QueueSendOptions {
  /**
   * Of all messages of a queue that are sent under one key only the first one counts: while it waits, and
   * for a day after it was sent, unless 10,000 later ones came and went. 1 to 128 bytes of UTF-8.
   */
  dedupeKey?: string | undefined;
  /** How long it waits before it may be received, in milliseconds from 0. */
  delay?: number | undefined;
}

/** How something is waited for. */
export interface QueueWaitOptions {
  /** How long, in milliseconds from 0. Default for ever. */
  timeout?: number | undefined;
  /** Ends the wait when it fires. */
  signal?: AbortSignal | undefined;
}

/** Options of `enqueueAndWait`. */
export type QueueEnqueueAndWaitOptions = QueueWaitOptions;

/** Options of `tryNext`. */
export interface QueueTryNextOptions<N extends string = string, C extends boolean = boolean> {
  /** The queues. Default all that are declared. */
  names?: readonly N[] | undefined;
  /** Whether the message waits until it is completed. Default false: it is gone when it is received. */
  completable?: C | undefined;
}

/** Options of `tryNextBatch`. */
export interface QueueTryNextBatchOptions<N extends string = string, C extends boolean = boolean>
  extends QueueTryNextOptions<N, C> {
  /** How many at most, a whole number from 1. Default 1. */
  count?: number | undefined;
}

/** Options of `next`. */
export interface QueueNextOptions<N extends string = string, C extends boolean = boolean>
  extends QueueTryNextOptions<N, C>,
    QueueWaitOptions {}

/** Options of `nextBatch`. */
export interface QueueNextBatchOptions<N extends string = string, C extends boolean = boolean>
  extends QueueTryNextBatchOptions<N, C>,
    QueueWaitOptions {}

/** Options of `iter`. */
export interface QueueIterOptions<N extends string = string, C extends boolean = boolean>
  extends QueueTryNextOptions<N, C> {
  /** Ends the loop when it fires. */
  signal?: AbortSignal | undefined;
}

/** A message that was given up. */
export interface DeadQueueMessage {
  readonly id: number;
  readonly name: string;
  readonly body: unknown;
  /** When it was sent, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** How often it was received. */
  readonly deliveryCount: number;
  /** When it was given up, in milliseconds since the epoch. */
  readonly diedAt: number;
  /** What its last consumer said against it. */
  readonly error: string | undefined;
}

/** Which messages that were given up are listed. */
export interface DeadQueueListOptions {
  /** Only those behind this id. */
  after?: number | undefined;
  /** How many at most, a whole number from 1. Default 100. */
  limit?: number | undefined;
}

/** Messages that were given up: received as often as their queue allows, and never completed. */
export interface DeadQueue {
  /** By id. */
  list(options?: DeadQueueListOptions): Promise<DeadQueueMessage[]>;
  /**
   * Lets one wait again, as if it had never been received; says whether it was there.
   *
   * @throws rejects with `queue.full`
   */
  retry(id: number): Promise<boolean>;
  /** Throws one away; says whether it was there. */
  delete(id: number): Promise<boolean>;
}

/**
 * An actor's messages. Whatever one turn changes, here and in the state, is stored together; what
 * sends, completes or gives back resolves when that is durable, and a message comes when its delivery is.
 *
 * Messages come in the order in which they were sent, but for those that were delayed or given back, and
 * those whose schema is asynchronous. One
 * that is received with `completable` has one consumer at a time, and comes again until it is completed:
 * at least once. Any other is gone when it is received: at most once. While a context has a message to
 * complete, it receives no other: `queue.previous_message_not_completed`.
 *
 * All reject with `queue.not_declared` for a name that is not in `queues`.
 */
export interface QueueOf<T extends AnyQueueTypes<T>> {
  /**
   * Sends a message.
   *
   * @throws rejects with `queue.full`, `queue.message_too_large`, `actor.validation_error`
   */
  send<N extends keyof T & string>(
    name: N,
    body: T[N]["sent"],
    options?: QueueSendOptions,
  ): Promise<SentQueueMessage<N>>;
  /**
   * Sends a message and waits for the response of whoever completes it. It stays when the wait ends.
   * Nobody but another consumer can complete it while this one waits: a wait that only those can end
   * who wait for it is refused with `queue.circular_wait`.
   *
   * @throws rejects with `queue.timed_out`, `actor.aborted`, `queue.dead`, and as `send` does.
   */
  enqueueAndWait<N extends keyof T & string>(
    name: N,
    body: T[N]["sent"],
    options?: QueueEnqueueAndWaitOptions,
  ): Promise<T[N]["response"] | undefined>;
  /**
   * Receives a message; `undefined` when the time is over.
   *
   * @throws rejects with `actor.aborted` when the signal fires or the actor stops.
   */
  next<N extends keyof T & string = keyof T & string, C extends boolean = false>(
    options?: QueueNextOptions<N, C>,
  ): Promise<QueueMessageAs<T, N, C> | undefined>;
  /** Receives what is there, up to `count`, or waits for a first one; `[]` when the time is over. */
  nextBatch<N extends keyof T & string = keyof T & string, C extends boolean = false>(
    options?: QueueNextBatchOptions<N, C>,
  ): Promise<QueueMessageAs<T, N, C>[]>;
  /** Receives a message if one is there. */
  tryNext<N extends keyof T & string = keyof T & string, C extends boolean = false>(
    options?: QueueTryNextOptions<N, C>,
  ): Promise<QueueMessageAs<T, N, C> | undefined>;
  /** Receives what is there, up to `count`. */
  tryNextBatch<N extends keyof T & string = keyof T & string, C extends boolean = false>(
    options?: QueueTryNextBatchOptions<N, C>,
  ): Promise<QueueMessageAs<T, N, C>[]>;
  /**
   * Receives a message of the given queues.
   *
   * @throws rejects with `queue.timed_out`, `actor.aborted`
   */
  waitForNames<N extends keyof T & string, C extends boolean = false>(
    names: readonly N[],
    options?: QueueWaitOptions & { completable?: C | undefined },
  ): Promise<QueueMessageAs<T, N, C>>;
  /**
   * Resolves when a message of the given queues is there, of any without names, and takes none.
   *
   * @throws rejects with `queue.timed_out`, `actor.aborted`
   */
  waitForAvailable(
    names?: readonly (keyof T & string)[],
    options?: QueueWaitOptions,
  ): Promise<void>;
  /**
   * Completes a message by its id and name, whoever has it, also after a restart; says whether it was
   * there.
   *
   * @throws rejects with `queue.message_identity_mismatch`, `actor.validation_error`
   */
  complete<N extends keyof T & string>(
    message: { readonly id: number | bigint; readonly name: N },
    response?: T[N]["answered"],
  ): Promise<boolean>;
  /** The messages as they come, for `for await`; ends when the actor stops or the signal fires. */
  iter<N extends keyof T & string = keyof T & string, C extends boolean = false>(
    options?: QueueIterOptions<N, C>,
  ): AsyncGenerator<QueueMessageAs<T, N, C>, void, undefined>;
  /** What was given up. */
  readonly dead: DeadQueue;
}

/** The messages of an actor with the given queues. */
export type ActorQueue<Q = unknown> = QueueOf<TypesOfQueues<Q>>;

/** Options of `send` of a handle. */
export interface HandleSendOptions extends QueueSendOptions {
  /** Gives the send up when it fires. A message that has been stored stays. */
  signal?: AbortSignal | undefined;
  wait?: false | undefined;
}

/** Options of `send` of a handle that waits for the response. */
export interface HandleSendAndWaitOptions extends QueueSendOptions, QueueWaitOptions {
  wait: true;
}

/** How a send that waited ended. */
export type QueueSendResult<R> =
  | { readonly status: "completed"; readonly response?: R | undefined }
  | { readonly status: "timedOut"; readonly response?: undefined };

/** `send` of a handle. */
export interface HandleSend<T extends AnyQueueTypes<T>> {
  /**
   * Sends a message and waits until it is completed. The wait counts as a call of the actor:
   * `options.actionTimeout` ends it, too.
   *
   * @throws rejects with `queue.not_declared`, `queue.full`, `queue.message_too_large`, `queue.dead`,
   * `actor.validation_error`
   */
  <N extends keyof T & string>(
    name: N,
    body: T[N]["sent"],
    options: HandleSendAndWaitOptions,
  ): Promise<QueueSendResult<T[N]["response"]>>;
  /** Sends a message. Resolves when it is durable. */
  <N extends keyof T & string>(
    name: N,
    body: T[N]["sent"],
    options?: HandleSendOptions,
  ): Promise<void>;
}
