// The count without actors, and what it disagrees about with the one through them.

import { readFileSync } from "node:fs";
import { byLetter, count } from "./words.mjs";

/** One pass over whole files. */
export function countPlainly(files) {
  const counts = new Map();
  for (const file of files) count(readFileSync(file, "utf8"), counts);
  return byLetter(counts);
}

/** What two lists of `[word, number]`s disagree about, a line for each word. */
export function differences(expected, actual) {
  const plain = new Map(expected);
  const counted = new Map(actual);
  const words = new Set([...plain.keys(), ...counted.keys()]);
  return [...words]
    .filter((word) => plain.get(word) !== counted.get(word))
    .map((word) => `${word}: counted ${counted.get(word) ?? 0}, should be ${plain.get(word) ?? 0}`);
}
