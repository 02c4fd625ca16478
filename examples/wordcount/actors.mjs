// The actors: one for each letter, and one that remembers how far the work has come.

import { actor, setup, UserError } from "greenroom";

/**
 * Counts the words that begin with one letter.
 *
 * Chunks come in order, and `next` is in the same state as the counts, so it changes with them or
 * not at all. A chunk that comes again, because the process that sent it died before it heard the
 * answer, is known by its number and ignored.
 */
const letter = actor({
  createState: () => ({ next: 0, counts: new Map() }),
  actions: {
    /** Adds one chunk's `[word, number]`s; answers whether they were new. */
    add(c, chunk, batch) {
      const { next, counts } = c.state;
      if (chunk < next) return false;
      if (chunk > next) throw new UserError(`chunk ${chunk} came where ${next} was due`);
      for (const [word, times] of batch) counts.set(word, (counts.get(word) ?? 0) + times);
      c.state.next = chunk + 1;
      return true;
    },

    /** All counts, as `[word, number]`s. */
    counts: (c) => [...c.state.counts],
  },
});

/** Remembers how many chunks every letter has counted. */
const progress = actor({
  state: { done: 0 },
  actions: {
    done: (c) => c.state.done,
    advance(c, done) {
      c.state.done = done;
    },
  },
});

/** Opens the folder that holds everything these actors know. */
export const open = (storage) => setup({ use: { letter, progress }, storage });
