/** `c.queue.dead`: messages that were given up. */

import { written } from "../actors/written";
import { decode } from "../codec";
import { messages, type NativeQueue } from "../native-half";
import type { DeadQueue, DeadQueueMessage } from "../types";
import { idOf, plainly, readOptions, wholeOf } from "./options";

/** How many are listed without a `limit`. */
const PART = 100;

export class Dead implements DeadQueue {
  readonly #native: () => NativeQueue;

  constructor(native: () => NativeQueue) {
    this.#native = native;
  }

  async list(options?: object): Promise<DeadQueueMessage[]> {
    const read = readOptions(options, "queue.dead.list", ["after", "limit"]);
    const after = wholeOf(read, "after", "queue.dead.list", { least: 0, usual: 0 });
    const limit = wholeOf(read, "limit", "queue.dead.list", { least: 1, usual: PART });
    const found = await plainly(messages.listDead(this.#native(), after, limit));
    return found.map(({ id, name, body, createdAt, deliveries, diedAt, error }) => ({
      id,
      name,
      body: decode(body),
      createdAt,
      deliveryCount: deliveries,
      diedAt,
      error: error === "" ? undefined : error,
    }));
  }

  retry(id: number): Promise<boolean> {
    return written(async () =>
      plainly(messages.retryDead(this.#native(), idOf(id, "queue.dead.retry"))),
    );
  }

  delete(id: number): Promise<boolean> {
    return written(async () =>
      plainly(messages.deleteDead(this.#native(), idOf(id, "queue.dead.delete"))),
    );
  }
}
