/**
 * Messages that remote clients send: as a list of the name, the body and `{wait, timeoutMs}`, and answered
 * with `{status, response}`, all in the form that those clients read.
 */

import type { Live } from "../actors/live";
import { decode, encode } from "../codec";
import { encodeRemote } from "../codec/remote";
import { readRemote } from "../connections/remote";
import type { SendAnswer, SendArguments } from "./send";

/** What a client sent, as messages from handles are. */
export function readSent(bytes: Uint8Array | undefined, live: Live): SendArguments {
  const sent = readRemote(bytes, "body", live.specifier);
  const [name, body, { wait, timeoutMs, delayMs, dedupeKey }] = sent as [
    string,
    unknown,
    {
      wait: boolean;
      timeoutMs: number | bigint;
      delayMs?: number | bigint;
      dedupeKey?: string;
    },
  ];
  const options = {
    delayMs: delayMs === undefined ? undefined : Number(delayMs),
    dedupeKey,
    wait,
    timeoutMs: Number(timeoutMs),
  };
  return [name, encode(body, "body"), options];
}

/** The answer to it. */
export function encodeRemoteAnswer({ status, response }: SendAnswer): Uint8Array {
  const answer = response === undefined ? { status } : { status, response: decode(response) };
  return encodeRemote(answer, "response");
}
