/**
 * `tx.queue`: what a transaction sends, completes and gives back.
 *
 * 1. No method throws: what is wrong with an argument is the promise's.
 * 2. A message that it ends is over at once, and open again when the transaction is rolled back.
 */

import type { Live } from "../actors/live";
import { describe } from "../definition/keys";
import { invalidArgument } from "../errors";
import { messages, type NativeQueue } from "../native-half";
import { Message } from "../queue/message";
import { delayOf, idOf, plainly, readOptions, reasonOf, sendOptionsOf } from "../queue/options";
import { bytesOf, responseOf, rulesOf } from "../queue/rules";
import type { SentQueueMessage } from "../types";

export class TransactionMessages {
  readonly #live: Live;
  readonly #native: () => NativeQueue;
  /** What it ended (2). */
  readonly #ended: Message[] = [];

  constructor(live: Live, native: () => NativeQueue) {
    this.#live = live;
    this.#native = native;
  }

  async send(name: string, body: unknown, options?: object): Promise<SentQueueMessage> {
    const read = readOptions(options, "tx.queue.send", ["dedupeKey", "delay"]);
    const how = sendOptionsOf(read, "tx.queue.send");
    const bytes = bytesOf(rulesOf(this.#live, name), name, body);
    const checked = bytes instanceof Uint8Array ? bytes : await bytes;
    const { id, createdAt } = await plainly(messages.send(this.#native(), name, checked, how));
    return { id, name, createdAt };
  }

  async complete(message: unknown, response?: unknown): Promise<boolean> {
    if (typeof message !== "object" || message === null) {
      throw invalidArgument(`tx.queue.complete() takes a message, not ${describe(message)}`);
    }
    const { id: given, name } = message as { id: unknown; name: string };
    const id = idOf(given, "tx.queue.complete");
    const rules = rulesOf(this.#live, name);
    const bytes = responseOf(rules, name, response);
    const checked = bytes instanceof Promise ? await bytes : bytes;
    if (!(message instanceof Message)) {
      return plainly(messages.completeById(this.#native(), id, name, checked));
    }
    await this.#end(message, () =>
      messages.complete(this.#native(), id, message.deliveryCount, checked),
    );
    return true;
  }

  async nack(message: unknown, options?: object): Promise<void> {
    const read = readOptions(options, "tx.queue.nack", ["delay", "error"]);
    const [delay, reason] = [delayOf(read, "tx.queue.nack"), reasonOf(read.error)];
    if (!(message instanceof Message)) {
      const what = "a message that was received with completable";
      throw invalidArgument(`tx.queue.nack() takes ${what}, not ${describe(message)}`);
    }
    await this.#end(message, () =>
      messages.release(this.#native(), message.id, message.deliveryCount, delay, reason),
    );
  }

  /** The transaction was rolled back (2). */
  undo(): void {
    for (const message of this.#ended) Message.reopened(message);
  }

  async #end(message: Message, end: () => Promise<void>): Promise<void> {
    Message.checkOpen(message);
    Message.ended(message);
    try {
      await plainly(end());
    } catch (error) {
      Message.reopened(message);
      throw error;
    }
    this.#ended.push(message);
  }
}
