/** What becomes of messages whose consumer failed. */

import type { Live } from "../actors/live";
import { messageOf } from "../errors";
import type { Messages } from "./index";

/**
 * Messages that a function which failed had to complete wait again: nobody else may receive them while
 * it has them, and it completes none any more.
 */
export async function giveBack(
  live: Live,
  messages: Messages | undefined,
  thrown: unknown,
): Promise<void> {
  try {
    await messages?.fail(thrown);
  } catch (error) {
    // They come again with the next generation: this one is about to end.
    live.log.warn({ msg: `a message could not be given back: ${messageOf(error)}`, error });
  }
}
