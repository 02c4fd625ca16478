/**
 * A message that waits until it is completed, in the hands of its consumer.
 *
 * 1. It ends once, when the call that ends it is made; one that fails leaves it open.
 */

import type { Waiter } from "../actors/waiter";
import { written } from "../actors/written";
import { RivetError } from "../errors";
import { messages, type NativeQueue, type Received, unbridged } from "../native-half";
import type { OpenQueueMessage } from "../types";
import { delayOf, readOptions, reasonOf } from "./options";

/** What a message needs of the context that received it. */
export interface Holder extends Waiter {
  readonly native: NativeQueue;
  /** A response as it is stored. */
  response(
    name: string,
    response: unknown,
  ): Uint8Array | undefined | Promise<Uint8Array | undefined>;
  /** Notes that a message is open, or no longer. */
  note(message: Message, isOpen: boolean): void;
}

export class Message implements OpenQueueMessage<string, unknown, unknown> {
  readonly id: number;
  readonly name: string;
  readonly body: unknown;
  readonly createdAt: number;
  readonly deliveryCount: number;
  readonly #holder: Holder;
  #isOver = false;

  constructor(holder: Holder, received: Received, body: unknown) {
    this.id = received.id;
    this.name = received.name;
    this.body = body;
    this.createdAt = received.createdAt;
    this.deliveryCount = received.deliveries;
    this.#holder = holder;
    holder.note(this, true);
  }

  complete(response?: unknown): Promise<void> {
    return this.#end(async () => {
      const given = this.#holder.response(this.name, response);
      // Not awaited where that is not needed: it goes with what this turn changed.
      const bytes = given instanceof Promise ? await given : given;
      const { native } = this.#holder;
      await this.#holder.waits(messages.complete(native, this.id, this.deliveryCount, bytes));
    });
  }

  nack(options?: object): Promise<void> {
    return this.#end(async () => {
      const read = readOptions(options, "nack", ["delay", "error"]);
      const [delay, reason] = [delayOf(read, "nack"), reasonOf(read.error)];
      const { native } = this.#holder;
      await this.#holder.waits(
        messages.release(native, this.id, this.deliveryCount, delay, reason),
      );
    });
  }

  /** It ended by its id. */
  static ended(message: Message): void {
    message.#isOver = true;
    message.#holder.note(message, false);
  }

  /** It goes on, because what ended it was undone. */
  static reopened(message: Message): void {
    message.#isOver = false;
    message.#holder.note(message, true);
  }

  /** @throws `queue.already_completed` */
  static checkOpen(message: Message): void {
    if (message.#isOver) throw alreadyCompleted();
  }

  #end(end: () => Promise<void>): Promise<void> {
    return written(() => this.#endOnce(end));
  }

  /** See (1). */
  async #endOnce(end: () => Promise<void>): Promise<void> {
    if (this.#isOver) throw alreadyCompleted();
    Message.ended(this);
    try {
      await end();
    } catch (error) {
      const plain = unbridged(error);
      // Unless somebody else ended it.
      if ((plain as { code?: unknown }).code !== "already_completed") {
        this.#isOver = false;
        this.#holder.note(this, true);
      }
      throw plain;
    }
  }
}

function alreadyCompleted(): RivetError {
  return new RivetError("queue", "already_completed", "the queue message was already completed", {
    public: true,
    statusCode: 400,
  });
}
