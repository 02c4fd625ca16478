// What actors did, noted in the memory of the application, which outlives their sleep and their end.

import { actor } from "rivetkit";

const notes = new Map();
const place = (key) => JSON.stringify(key);

/** Notes what an actor does. */
export function note(c, what) {
  notes.set(place(c.key), [...(notes.get(place(c.key)) ?? []), what]);
}

/** Hooks of an actor that notes when it wakes and sleeps. */
export const noted = {
  onWake: (c) => note(c, "onWake"),
  onSleep: (c) => note(c, "onSleep"),
};

/** Tells what the actor of a key did. */
export const witness = actor({
  options: { sleepTimeout: 600_000 },
  actions: { done: (_c, key) => notes.get(place(key)) ?? [] },
});
