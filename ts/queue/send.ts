/**
 * Messages that come from a handle, in the actor that gets them.
 *
 * They travel as a call of their own name, which no action can have: in place, or the ordinary way. So
 * the same holds for them as for calls: their order, the gate of the actor that sends, its timeout.
 */

import { forCaller } from "../actors/action";
import type { Context } from "../actors/context";
import type { Live } from "../actors/live";
import type { Call } from "../calls/call";
import { encode } from "../codec";
import { isRivetErrorCode, RivetError } from "../errors";
import { messages } from "../native-half";
import { plainly, type SendOptions } from "./options";
import { checkedBytes, rulesOf } from "./rules";
import { withToken } from "./wait";

/** What travels. */
export type SendArguments = [
  name: string,
  body: Uint8Array,
  options: SendOptions & { readonly wait: boolean; readonly timeoutMs: number },
];

/** What comes back; the response is encoded. */
export interface SendAnswer {
  readonly status: "completed" | "timedOut";
  readonly response?: Uint8Array;
}

/** Sends a message that a handle sent. `context` makes one for an author's `canPublish`. */
export async function runSend(
  live: Live,
  call: Call,
  [name, body, options]: SendArguments,
  context: () => Context,
): Promise<SendAnswer> {
  try {
    return await live.during(
      `send to ${name}`,
      async () => {
        const rules = rulesOf(live, name);
        // Everybody else runs in this process, with all it may do.
        if (call.caller === "client" && rules.canPublish !== undefined) {
          await checkMayPublish(live, name, await rules.canPublish(context()));
        }
        const checked = checkedBytes(rules, name, body);
        // Not awaited where that is not needed: those behind it would come first.
        const bytes = checked instanceof Uint8Array ? checked : await checked;
        if (!options.wait) {
          await live.waits(plainly(messages.send(live.queue, name, bytes, options)), call);
          return { status: "completed" };
        }
        const answered = withToken([call.signal], (token) =>
          messages.sendAndWait(live.queue, name, bytes, { ...options, token }),
        );
        const response = await live.waits(answered, call);
        return response === null ? { status: "completed" } : { status: "completed", response };
      },
      call,
    );
  } catch (thrown) {
    if (options.wait && isRivetErrorCode(thrown, "queue", "timed_out")) {
      return { status: "timedOut" };
    }
    throw forCaller(thrown, live, call.caller === "client");
  } finally {
    call.release();
  }
}

/** An answer of {@link runSend} for the ordinary way. */
export function encodeAnswer(answer: SendAnswer): Uint8Array {
  return encode(answer, "result");
}

function checkMayPublish(live: Live, name: string, allowed: unknown): void {
  if (allowed === true) return;
  if (allowed !== false) {
    throw new TypeError(`canPublish of queue ${name} gave ${typeof allowed}, not true or false`);
  }
  throw new RivetError("auth", "forbidden", `Publishing to queue \`${name}\` is not allowed.`, {
    public: true,
    statusCode: 403,
    metadata: { queue: name },
    actor: live.specifier,
  });
}
