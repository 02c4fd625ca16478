/**
 * Requests and answers of HTTP, as they cross: a head as JSON, with its length before it and a small body
 * behind it. Any other body goes in pieces through the exchange that the head names.
 */

import { RivetError } from "../errors";
import { clockwork, crossing, type Exchange } from "../native-half";

/** What is told of a request. */
export interface RequestHead {
  readonly method: string;
  readonly uri: string;
  readonly headers: [name: string, value: string][];
  readonly exchange: number;
  readonly streams: boolean;
}

/** What is told of an answer. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: [name: string, value: string][];
  readonly streams: boolean;
}

/** In which header published clients say what URL the author is to see. */
const ORIGINAL_URL = "x-rivet-internal-original-request-url";

/** Methods that `Request` does not take. */
const REFUSED = ["CONNECT", "TRACE", "TRACK"];

/** The longest body that goes along with its head, in bytes. */
export const INLINE = 64 * 1024;

/** The request that crossed, whose body is read from `exchange` unless it came along. */
export function requestOf(
  head: RequestHead,
  body: Uint8Array,
  exchange: Exchange,
  signal: AbortSignal,
  seesOriginal = false,
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
  const original = seesOriginal ? headers.get(ORIGINAL_URL) : null;
  headers.delete(ORIGINAL_URL);
  const url =
    original !== null && URL.canParse(original)
      ? original
      : `http://${headers.get("host") ?? "127.0.0.1"}${head.uri}`;
  if (!URL.canParse(url)) {
    throw new RivetError("actor", "invalid_request", "The URL of the request is none.", {
      public: true,
      statusCode: 400,
      metadata: { path: head.uri },
    });
  }
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

/** What comes through an exchange; `ended` is told when it has ended, or nobody reads it any more. */
export function incoming(exchange: Exchange, ended?: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      pull: async (controller) => {
        try {
          const piece = await exchange.read();
          if (piece !== null) return controller.enqueue(copyOf(piece));
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        ended?.();
      },
      cancel: () => {
        exchange.cancel();
        ended?.();
      },
    },
    // Nothing is taken before somebody reads.
    { highWaterMark: 0 },
  );
}

/** Checks what an author's function called `what` gave. */
export function checkResponse(response: unknown, what: string): asserts response is Response {
  const { status, headers } = (response ?? {}) as Partial<Response>;
  // Frameworks have responses of their own, which are no instances of the global one.
  if (typeof status !== "number" || typeof headers?.forEach !== "function") {
    throw new TypeError(`${what} gave no Response`);
  }
}

/** Sends the rest of a body whose beginning did not fit behind its head. */
export interface Rest {
  begin(begun: Begun): void;
}

/** What is made of a response: all of it, or its head, with the rest on its way. */
export async function pack(response: Response, rest: Rest): Promise<Uint8Array> {
  const pieces = response.body?.getReader();
  if (pieces === undefined) return packed(response, false, []);
  const first = await atOnce(pieces).catch((error) => {
    giveUp(pieces, error);
    throw error;
  });
  if (first.ended) return packed(response, false, first.pieces);
  rest.begin({ reader: pieces, first: first.pieces, next: first.next });
  return packed(response, true, []);
}

export type Pieces = ReadableStreamDefaultReader<Uint8Array>;
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

export function bytesOf(piece: unknown): Uint8Array {
  if (piece instanceof Uint8Array) return piece;
  throw new TypeError(`the body of a Response gave ${typeof piece}, not bytes`);
}

/** Of a body, what was read of it and the read that waits. */
export interface Begun {
  readonly reader: Pieces;
  readonly first?: Uint8Array[];
  readonly next?: Next | undefined;
}

/** Writes a body to an exchange, to its end. */
export async function send(to: Pick<Exchange, "write" | "end">, body: Begun): Promise<void> {
  const { reader, first = [], next } = body;
  const write = async (piece: Uint8Array): Promise<void> => {
    for (let at = 0; at < piece.byteLength; at += INLINE) {
      await to.write(piece.subarray(at, at + INLINE));
    }
  };
  for (const piece of first) await write(piece);
  for (let read = next ?? reader.read(); ; read = reader.read()) {
    const { done, value } = await read;
    if (done) break;
    await write(bytesOf(value));
  }
  await to.end();
}

/** Whom an answer that comes in pieces waits for. */
export interface Pace {
  /** Awaited before each piece. */
  ready?(): Promise<void> | undefined;
  /** Has `told` called when nothing more may be answered. Returns what takes that back. */
  whenOver?(told: (why: unknown) => void): () => void;
}

/**
 * Answers a client with a body. When the client goes before the end, whether a write or the exchange
 * says so first, or nothing more may be answered, `gone` fires. Whatever ends it, a body that is not
 * read to its end is cancelled. Rejects with what failed while somebody still read, once the answer is
 * broken off.
 */
export async function respond(
  exchange: Exchange,
  body: Begun,
  gone: AbortController,
  pace: Pace = {},
): Promise<void> {
  const leave = (why: unknown): void => {
    gone.abort(why);
    giveUp(body.reader, why);
  };
  const clientLeft = () => leave(new DOMException("the client has gone", "AbortError"));
  const refused = (error: unknown): never => {
    clientLeft();
    throw error;
  };
  const write = async (piece: Uint8Array): Promise<void> => {
    await pace.ready?.();
    await exchange.write(piece).catch(refused);
  };
  const closed = (): void => {
    if (!exchange.hasEnded) clientLeft();
  };
  // An environment that ends has no client to hear of.
  exchange.closed().then(closed, () => {});
  const forget = pace.whenOver?.((why) => {
    exchange.fail();
    leave(why);
  });
  try {
    await send({ write, end: () => exchange.end().catch(refused) }, body);
  } catch (error) {
    exchange.fail();
    giveUp(body.reader, error);
    if (!gone.signal.aborted) throw error;
  } finally {
    forget?.();
    exchange.cancel();
  }
}

/** Cancels a body. What a source says of its own end concerns nobody any more. */
function giveUp(reader: Pieces, why: unknown): void {
  reader.cancel(why).catch(() => {});
}

function packed(response: Response, streams: boolean, pieces: Uint8Array[]): Uint8Array {
  const headers: [string, string][] = [];
  response.headers.forEach((value, name) => {
    if (name !== "set-cookie") headers.push([name, value]);
  });
  for (const cookie of response.headers.getSetCookie?.() ?? [])
    headers.push(["set-cookie", cookie]);
  return crossing.packHead({ status: response.status, headers, streams }, pieces);
}

/** The head and the body of what crossed. */
export function unpack<H = RequestHead>(args: Uint8Array): { head: H; body: Uint8Array } {
  return crossing.unpackHead<H>(args);
}
