/**
 * The contract's `onQueueSend`: a message of a client comes as a call under a name that no action can have.
 */
import {
  type ActorContext,
  type CancellationToken,
  type ConnHandle,
  sendParts,
} from "../../index.js";
import type { ActionPayload } from "./actions.js";
import type { ConnectionRequest } from "./connections.js";
import { SEND } from "./crossing.js";
import { invalidState } from "./errors.js";
import type { Callback, Callbacks } from "./factory.js";

/** What `onQueueSend` is called with. */
export interface SendPayload {
  readonly ctx: ActorContext;
  readonly conn: ConnHandle;
  readonly request: ConnectionRequest | undefined;
  readonly name: string;
  readonly body: Buffer;
  readonly wait: boolean;
  /** In milliseconds; undefined for no limit. */
  readonly timeoutMs: bigint | undefined;
  readonly cancelToken: CancellationToken;
}

const STATUSES: readonly unknown[] = ["completed", "timedOut"];

/** Functions with what their `onQueueSend` needs; the same ones without one. */
export function withSends(callbacks: Callbacks): Callbacks {
  const written = callbacks.onQueueSend as Callback<SendPayload> | undefined;
  if (typeof written !== "function") return callbacks;
  const actions: Record<string, Callback<ActionPayload>> = {
    [SEND]: (_, payload) => send(written, payload),
  };
  return { ...callbacks, actions: Object.assign(Object.create(null), callbacks.actions, actions) };
}

async function send(written: Callback<SendPayload>, payload: ActionPayload): Promise<Uint8Array> {
  // They come over connections only.
  const conn = payload.conn as ConnHandle;
  const head = conn.request();
  const request = head === null ? undefined : (JSON.parse(head) as ConnectionRequest);
  const { name, body, wait, timeoutMs } = sendParts(payload.args);
  const outcome = (await written(null, {
    ctx: payload.ctx,
    conn,
    request,
    name,
    body,
    wait,
    timeoutMs: timeoutMs ?? undefined,
    cancelToken: payload.cancelToken,
  })) as { status?: unknown; response?: Uint8Array | null } | undefined;
  return packOutcome(outcome);
}

/** A map of CBOR (RFC 8949), in which the response stays as it is. */
function packOutcome(outcome: { status?: unknown; response?: Uint8Array | null } = {}): Buffer {
  const { status, response } = outcome;
  if (!STATUSES.includes(status)) {
    const reason = `expected completed or timedOut, not ${String(status)}`;
    throw invalidState("queue send status", reason);
  }
  const isAnswered = response !== undefined && response !== null && response.byteLength > 0;
  const head = [Buffer.of(isAnswered ? 0xa2 : 0xa1), text("status"), text(String(status))];
  return Buffer.concat(isAnswered ? [...head, text("response"), response] : head);
}

/** A text of fewer than 24 bytes. */
function text(short: string): Buffer {
  return Buffer.concat([Buffer.of(0x60 + short.length), Buffer.from(short, "latin1")]);
}
