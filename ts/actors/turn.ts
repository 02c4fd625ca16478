/**
 * Who is to hear of the end of the turn.
 *
 * The end that commits is the native half's; this one is for `onStateChange`, which is due with
 * every durability. Whichever comes first tells the author, once.
 */

/** Something that is due. */
interface Announcer {
  announce(): void;
}

let due: Announcer[] = [];

/** Calls `announce` when the event loop has turned. */
export function atTurnsEnd(announcer: Announcer): void {
  if (due.length === 0) setImmediate(end);
  due.push(announcer);
}

function end(): void {
  const ending = due;
  due = [];
  for (const announcer of ending) announcer.announce();
}
