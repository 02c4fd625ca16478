/** Transactions of an actor, as types. */

import type { ActorKv } from "./kv";
import type { QueueNackOptions, QueueSendOptions, SentQueueMessage, TypesOfQueues } from "./queue";
import type { ActorCron, ActorSchedule } from "./schedule";
import type { ActorSql } from "./sql";

/** How long a transaction may take. */
export interface ActorTransactionOptions {
  /** Milliseconds above 0 after which it is rolled back. Default 5,000. */
  timeout?: number | undefined;
}

/** What a queue has of an actor's within a transaction. */
export interface TransactionQueueOf<
  T extends { readonly [K in keyof T]: { readonly sent: unknown; readonly answered: unknown } },
> {
  /**
   * Sends a message when the transaction commits.
   *
   * @throws rejects with `queue.full`, `queue.message_too_large`, `actor.validation_error`
   */
  send<N extends keyof T & string>(
    name: N,
    body: T[N]["sent"],
    options?: QueueSendOptions,
  ): Promise<SentQueueMessage<N>>;
  /**
   * Completes a message when the transaction commits: one that was received with `completable`, or one
   * by its id and name. Says whether it is there.
   *
   * @throws rejects with `queue.already_completed`, `queue.message_identity_mismatch`,
   * `actor.validation_error`. When somebody else completes it meanwhile, the transaction is rolled back.
   */
  complete<N extends keyof T & string>(
    message: { readonly id: number | bigint; readonly name: N },
    response?: T[N]["answered"],
  ): Promise<boolean>;
  /**
   * Gives a message back when the transaction commits: one that was received with `completable`.
   *
   * @throws rejects with `queue.already_completed`
   */
  nack<N extends keyof T & string>(
    message: { readonly id: number; readonly name: N; readonly deliveryCount: number },
    options?: QueueNackOptions,
  ): Promise<void>;
}

/** The messages of an actor with the given queues, within a transaction. */
export type TransactionQueue<Q = unknown> = TransactionQueueOf<TypesOfQueues<Q>>;

/**
 * What belongs to a transaction. All of it is seen by the transaction alone until that commits, and
 * refused with `actor.state_transaction_finished` once it has ended.
 */
export interface ActorTransaction<
  State = unknown,
  Database = unknown,
  Queues = unknown,
  Actions = never,
> {
  /** The state: a copy that becomes the actor's state. */
  state: State;
  /** A plain copy of it. */
  snapshot(): State;
  /** SQL on the actor's file, at once. */
  readonly sql: ActorSql;
  /** The actor's database. */
  readonly db: Database;
  /** Keys and values. */
  readonly kv: ActorKv;
  /** Messages. */
  readonly queue: TransactionQueue<Queues>;
  /** What the actor does once, later. */
  readonly schedule: ActorSchedule<Actions>;
  /** What it does again and again. */
  readonly cron: ActorCron<Actions>;
}
