/**
 * Requests of clients that an author's `onRequest` answers, as the standard `Request` and `Response`.
 *
 * They come as a call under a name that no action can have. A head crosses as JSON, with its length before
 * it and a small body behind it; any other body goes through the exchange that the head names.
 *
 * 1. The head of an answer waits for the changes made before it, and so does each piece behind it.
 * 2. An answer that comes in pieces keeps the actor awake until it has ended, or its client has gone.
 * 3. What fails behind the head breaks the answer off, and is logged.
 */

import type { Call } from "../calls/call";
import { mayLeave } from "../calls/departures";
import { RivetError } from "../errors";
import { clockwork, dispatch, type Exchange } from "../native-half";
import { forCaller } from "./action";
import { Context } from "./context";
import type { Live } from "./live";

/** The name under which requests travel. Names of actions have no control characters. */
export const REQUEST = "\u0002request";

/** What is told of a request. */
interface RequestHead {
  readonly method: string;
  readonly uri: string;
  readonly headers: [name: string, value: string][];
  readonly exchange: number;
  readonly streams: boolean;
}

/** What a request brings along. */
export interface RequestPayload {
  readonly args?: Uint8Array;
  readonly signal: AbortSignal;
}

/** In which header published clients say what URL the author is to see. */
const ORIGINAL_URL = "x-rivet-internal-original-request-url";

/** Methods that `Request` does not take. */
const REFUSED = ["CONNECT", "TRACE", "TRACK"];

/** The longest body that goes along with its head, in bytes. */
const INLINE = 64 * 1024;

const HEAD_LENGTH = 4;

/** Has the author answer a request. */
export async function answerRequest(
  live: Live,
  call: Call,
  payload: RequestPayload,
): Promise<Uint8Array> {
  const onRequest = live.definition.hook("onRequest");
  const { head, body } = unpack(payload.args ?? new Uint8Array());
  const exchange = dispatch.exchange(head.exchange);
  const gone = new AbortController();
  try {
    const answer = async (): Promise<Uint8Array> => {
      const request = requestOf(head, body, exchange, AbortSignal.any([call.signal, gone.signal]));
      call.request = request;
      const response = await onRequest?.(new Context(live, call), request);
      checkResponse(response);
      return pack(response, new Sending(live, exchange, gone));
    };
    return await live.during("onRequest", answer, call);
  } catch (thrown) {
    throw forCaller(thrown, live);
  } finally {
    exchange.cancel();
    call.release();
  }
}

function requestOf(
  head: RequestHead,
  body: Uint8Array,
  exchange: Exchange,
  signal: AbortSignal,
): Request {
  const { method } = head;
  if (REFUSED.includes(method)) {
    throw new RivetError("actor", "method_not_allowed", `The method ${method} is not allowed.`, {
      public: true,
      statusCode: 405,
      metadata: { method, path: head.uri },
    });
  }
  const headers = new Headers(head.headers);
  const original = headers.get(ORIGINAL_URL);
  headers.delete(ORIGINAL_URL);
  const url =
    original !== null && URL.canParse(original)
      ? original
      : new URL(head.uri, `http://${headers.get("host") ?? "127.0.0.1"}`);
  const hasBody = method !== "GET" && method !== "HEAD";
  const sent = head.streams ? incoming(exchange) : body.byteLength === 0 ? null : copyOf(body);
  return new Request(url, {
    method,
    headers,
    signal,
    ...(hasBody && sent !== null ? { body: sent, duplex: "half" } : {}),
  } as RequestInit);
}

/** Of memory of its own: what came is a part of a batch. */
function copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}

function incoming(exchange: Exchange): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      pull: async (controller) => {
        const piece = await exchange.read();
        if (piece === null) controller.close();
        else controller.enqueue(copyOf(piece));
      },
      cancel: () => exchange.cancel(),
    },
    // Nothing is taken before somebody reads.
    { highWaterMark: 0 },
  );
}

function checkResponse(response: unknown): asserts response is Response {
  const { status, headers } = (response ?? {}) as Partial<Response>;
  // Frameworks have responses of their own, which are no instances of the global one.
  if (typeof status !== "number" || typeof headers?.forEach !== "function") {
    throw new TypeError("onRequest gave no Response");
  }
}

/** What is made of a response: all of it, or its head, with the rest on its way. */
async function pack(response: Response, sending: Sending): Promise<Uint8Array> {
  const pieces = response.body?.getReader();
  if (pieces === undefined) return packed(response, false, []);
  const first = await atOnce(pieces);
  if (first.ended) return packed(response, false, first.pieces);
  sending.begin(pieces, first.pieces, first.next);
  return packed(response, true, []);
}

type Pieces = ReadableStreamDefaultReader<Uint8Array>;
type Next = ReturnType<Pieces["read"]>;

/** What there is of a body without waiting for anything, up to a length, and the read that waits. */
async function atOnce(
  reader: Pieces,
): Promise<
  | { readonly ended: true; readonly pieces: Uint8Array[] }
  | { readonly ended: false; readonly pieces: Uint8Array[]; readonly next: Next | undefined }
> {
  const pieces: Uint8Array[] = [];
  let turned = false;
  const turn = new Promise<undefined>((resolve) => {
    clockwork.setImmediate(() => {
      turned = true;
      resolve(undefined);
    });
  });
  let length = 0;
  while (length <= INLINE) {
    const next = reader.read();
    const read = turned ? undefined : await Promise.race([next, turn]);
    if (read === undefined) return { ended: false, pieces, next };
    if (read.done) return { ended: true, pieces };
    pieces.push(bytesOf(read.value));
    length += read.value.byteLength;
  }
  return { ended: false, pieces, next: undefined };
}

function bytesOf(piece: unknown): Uint8Array {
  if (piece instanceof Uint8Array) return piece;
  throw new TypeError(`the body of a Response gave ${typeof piece}, not bytes`);
}

/** An answer that comes in pieces (2). */
class Sending {
  readonly #live: Live;
  readonly #exchange: Exchange;
  readonly #gone: AbortController;

  /** `gone` is aborted when the client goes before the end. */
  constructor(live: Live, exchange: Exchange, gone: AbortController) {
    this.#live = live;
    this.#exchange = exchange;
    this.#gone = gone;
  }

  begin(reader: Pieces, first: Uint8Array[], next: Next | undefined): void {
    const sent = this.#send(reader, first, next).catch((error) => {
      this.#exchange.fail();
      if (this.#gone.signal.aborted) return;
      this.#live.log.error({ msg: "the body of an answer failed", err: error });
    });
    const left = this.#exchange.closed().then(
      () => {
        this.#gone.abort(new DOMException("the client has gone", "AbortError"));
        return reader.cancel(this.#gone.signal.reason);
      },
      () => {},
    );
    left.catch(() => {});
    this.#live.bag.context.keepAwake(sent);
  }

  async #send(reader: Pieces, first: Uint8Array[], next: Next | undefined): Promise<void> {
    for (const piece of first) await this.#write(piece);
    for (let read = next ?? reader.read(); ; read = reader.read()) {
      const { done, value } = await read;
      if (done) break;
      await this.#write(bytesOf(value));
    }
    await this.#exchange.end();
  }

  async #write(piece: Uint8Array): Promise<void> {
    await mayLeave(this.#live, undefined);
    for (let at = 0; at < piece.byteLength; at += INLINE) {
      await this.#exchange.write(piece.subarray(at, at + INLINE));
    }
  }
}

function packed(response: Response, streams: boolean, pieces: Uint8Array[]): Uint8Array {
  const headers: [string, string][] = [];
  response.headers.forEach((value, name) => {
    if (name !== "set-cookie") headers.push([name, value]);
  });
  for (const cookie of response.headers.getSetCookie?.() ?? [])
    headers.push(["set-cookie", cookie]);
  const head = Buffer.from(JSON.stringify({ status: response.status, headers, streams }));
  const length = Buffer.alloc(HEAD_LENGTH);
  length.writeUInt32LE(head.byteLength);
  return Buffer.concat([length, head, ...pieces]);
}

function unpack(args: Uint8Array): { head: RequestHead; body: Uint8Array } {
  const bytes = Buffer.from(args.buffer, args.byteOffset, args.byteLength);
  const end = HEAD_LENGTH + bytes.readUInt32LE(0);
  const head = JSON.parse(bytes.toString("utf8", HEAD_LENGTH, end)) as RequestHead;
  return { head, body: bytes.subarray(end) };
}
