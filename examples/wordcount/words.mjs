// What a word is, and to which letter it belongs.

/** Where words go that begin with no letter of the Latin alphabet. */
export const OTHER = "other";
export const LETTERS = [..."abcdefghijklmnopqrstuvwxyz", OTHER];

const WORD = /\p{L}+/gu;
const initials = new Map();

/** The words of a text, in lower case. */
export const wordsOf = (text) => text.toLowerCase().match(WORD) ?? [];

/** The letter under which a word is counted; `été` is counted under `e`. */
export function letterOf(word) {
  const first = String.fromCodePoint(word.codePointAt(0));
  let letter = initials.get(first);
  if (letter === undefined) {
    const base = first.normalize("NFD")[0];
    letter = base >= "a" && base <= "z" ? base : OTHER;
    initials.set(first, letter);
  }
  return letter;
}

/** Adds the words of a text to `counts`, a Map from word to number. */
export function count(text, counts) {
  for (const word of wordsOf(text)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** Splits counts by letter: a Map from every letter, also an empty one, to `[word, number]`s. */
export function byLetter(counts) {
  const groups = new Map(LETTERS.map((letter) => [letter, []]));
  for (const entry of counts) groups.get(letterOf(entry[0])).push(entry);
  return groups;
}
