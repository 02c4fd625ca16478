/**
 * Who is to hear of the end of the turn.
 *
 * The end that commits is the native half's; this one is for `onStateChange`, which is due with
 * every durability. Whichever comes first tells the author, once.
 */

import { messageOf } from "../errors";
import type { Logger } from "../log";
import { clockwork } from "../native-half";

/** Something that is due. */
interface Announcer {
  readonly log: Logger;
  announce(): void;
}

let due: Announcer[] = [];

/** Calls `announce` when the event loop has turned. */
export function atTurnsEnd(announcer: Announcer): void {
  if (due.length === 0) clockwork.setImmediate(end);
  due.push(announcer);
}

/** Not in the async context of the actor that changed first: the others' hooks run here too. */
const end = clockwork.inOwnContext((): void => {
  const ending = due;
  due = [];
  for (const announcer of ending) {
    // One's fault is neither the others' nor the process's.
    try {
      announcer.announce();
    } catch (error) {
      announcer.log.error({ msg: `onStateChange could not run: ${messageOf(error)}`, err: error });
    }
  }
});
