/** `send` of a handle. */

import { decode, encode } from "../codec";
import { describe } from "../definition/keys";
import { invalidArgument, readingArgument } from "../errors";
import { crossing } from "../native-half";
import { unlessCircular } from "../queue/circles";
import { flagOf, readOptions, sendOptionsOf, signalOf, timeoutOf } from "../queue/options";
import type { SendAnswer } from "../queue/send";
import type { QueueSendResult } from "../types";
import type { Callee } from "./members";
import { either } from "./reach";

/** Sends a message to what `callee` is. It never throws synchronously. */
export async function sendThrough(
  callee: Callee,
  name: unknown,
  body: unknown,
  given: unknown,
): Promise<QueueSendResult<unknown> | undefined> {
  if (typeof name !== "string") {
    throw invalidArgument(`send() takes the name of a queue, not ${describe(name)}`);
  }
  const options = readOptions(given, "send", ["wait", "timeout", "signal", "dedupeKey", "delay"]);
  const wait = flagOf(options, "wait", "send");
  if (!wait && options.timeout !== undefined) {
    throw invalidArgument("timeout of options of send() needs wait: true");
  }
  const how = { ...sendOptionsOf(options, "send"), wait, timeoutMs: timeoutOf(options, "send") };
  // Now, because the caller may change it meanwhile.
  const bytes = readingArgument(() => encode(body, "body"));
  const signal = signalOf(options, "send");
  const leave = (ends?: AbortSignal): Promise<unknown> =>
    callee.call(crossing.SEND, [name, bytes, how], either(signal, ends));
  if (!wait) {
    await leave();
    return undefined;
  }
  const waiting = callee.waiting(name);
  const answered =
    waiting === undefined
      ? await leave()
      : await unlessCircular(waiting.party, waiting.awaited, leave);
  const { status, response } = answered as SendAnswer;
  return status === "timedOut" || response === undefined
    ? { status }
    : { status, response: decode(response) };
}
