/**
 * Inputs of actors, which are stored until the actor has started: from creators in this process, and from
 * clients elsewhere.
 *
 * 1. Who stored an input is told by its first bytes alone: ours are in an envelope, and no client knows
 *    of that. So a list of a client that is no pair stays one, and a pair of an author's, too.
 */

import { decode, encodeWith } from "./index";
import { decodeRemote } from "./remote";
import { INPUT, tagged } from "./tags";

/** A tag of four bytes. */
const HEAD = Uint8Array.of(
  0xda,
  INPUT >>> 24,
  (INPUT >>> 16) & 255,
  (INPUT >>> 8) & 255,
  INPUT & 255,
);

/**
 * Encodes the input of a creator in this process.
 *
 * @throws TypeError `Value at input ...` for what cannot be kept.
 */
export function encodeInput(input: unknown): Uint8Array {
  return encodeWith(input, "input", (lowered) => tagged(INPUT, lowered));
}

/**
 * Decodes an input, wherever it comes from. No bytes, or none at all, are `undefined`.
 *
 * @throws TypeError `Value at input ...` for what no client means.
 */
export function decodeInput(bytes: Uint8Array | null | undefined): unknown {
  const isOurs = bytes != null && HEAD.every((byte, at) => bytes[at] === byte);
  return isOurs ? decode(bytes.subarray(HEAD.length)) : decodeRemote(bytes, "input");
}
