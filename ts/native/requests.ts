/**
 * The contract's `onRequest`: a request comes as a call under a name that no action can have, its head as JSON
 * and a small body behind it, all other bytes through an exchange.
 *
 * 1. `cancelToken` fires once: when the client goes, when the call is given up, and when all is over, which
 *    for an answer in pieces is its end.
 * 2. An answer in pieces keeps the actor awake, and is broken off with the generation that gives it.
 */
import type { ActorContext, CancellationToken } from "../../index.js";
import type { ActionPayload } from "./actions.js";
import type { ActorBag } from "./bags.js";
import { HttpRequestBodyStream, HttpResponseBodyStream } from "./bodies.js";
import { packHead, REQUEST, unpackHead } from "./crossing.js";
import { Exchange } from "./exchange.js";
import type { Callback, Callbacks } from "./factory.js";
import { own, rayOfHead } from "./invocation.js";
import { newToken } from "./token.js";

/** A request, as payloads have it. */
export interface HttpRequest {
  readonly method: string;
  /** The path and the query within the actor. */
  readonly uri: string;
  /** Names in lower case, values of one name joined. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly bodyStream?: HttpRequestBodyStream;
}

/** What `onRequest` is called with. */
export interface RequestPayload {
  readonly ctx: ActionPayload["ctx"];
  readonly request: HttpRequest;
  readonly cancelToken: CancellationToken;
  readonly responseBodyStream: HttpResponseBodyStream;
}

/** What it gives: all of the answer, or its head. */
export interface HttpResponse {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | null;
  readonly stream?: boolean;
}

/** The head as it crosses. */
export interface CrossedHead {
  readonly method: string;
  readonly uri: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly exchange: number;
  readonly streams: boolean;
}

/** Functions with what their `onRequest` needs; the same ones without one. */
export function withRequests(callbacks: Callbacks): Callbacks {
  const written = callbacks.onRequest as Callback<RequestPayload> | undefined;
  if (typeof written !== "function") return callbacks;
  const actions: Record<string, Callback<ActionPayload>> = {
    [REQUEST]: (_, payload) => answer(written, payload),
  };
  return { ...callbacks, actions: Object.assign(Object.create(null), callbacks.actions, actions) };
}

async function answer(
  written: Callback<RequestPayload>,
  payload: ActionPayload,
): Promise<Uint8Array> {
  const { head, body } = unpackRequest(payload.args);
  const { environment, tickets } = payload.bag.home;
  const exchange = new Exchange(environment, head.exchange, tickets);
  const cancelToken = newToken();
  const request = httpRequest(head, body, exchange);
  const ctx = own(payload.bag, rayOfHead(request.headers));
  let streams = false;
  try {
    payload.cancelToken.onCancelled(() => {
      // The end of the call is that of a whole answer only (1).
      if (!streams) cancelToken.cancel();
    });
    const responseBodyStream = new HttpResponseBodyStream(exchange);
    const told = { ctx, request, cancelToken, responseBodyStream };
    const response = (await written(null, told)) as HttpResponse | undefined;
    streams = response?.stream === true;
    if (streams) keepOpen(payload.bag, ctx, exchange, cancelToken);
    return packResponse(response);
  } finally {
    if (!streams) {
      exchange.cancel();
      payload.bag.letGo(ctx);
    }
  }
}

/** See (1) and (2). */
function keepOpen(
  bag: ActorBag,
  ctx: ActorContext,
  exchange: Exchange,
  cancelToken: CancellationToken,
): void {
  const forget = bag.whenStopped(() => exchange.fail());
  const over = () => {
    forget();
    bag.letGo(ctx);
    exchange.cancel();
    cancelToken.cancel();
  };
  // An environment that ends has no client to hear of.
  ctx.keepAwake(exchange.closed().then(over, over));
}

/** A request of what crossed. */
export function httpRequest(head: CrossedHead, body: Uint8Array, exchange: Exchange): HttpRequest {
  const { method, uri } = head;
  const headers = joined(head.headers);
  if (head.streams) {
    return { method, uri, headers, bodyStream: new HttpRequestBodyStream(exchange) };
  }
  // Of memory of its own: what came is a part of a batch.
  return { method, uri, headers, body: Buffer.from(body) };
}

function joined(headers: CrossedHead["headers"]): Record<string, string> {
  const out: Record<string, string> = Object.create(null);
  for (const [name, value] of headers) {
    const before = out[name];
    // Cookies are the one list that has no commas (RFC 6265, 5.4).
    const between = name === "cookie" ? "; " : ", ";
    out[name] = before === undefined ? value : `${before}${between}${value}`;
  }
  return { ...out };
}

/** The head and the body of a request that crossed. */
export function unpackRequest(args: Uint8Array): { head: CrossedHead; body: Uint8Array } {
  return unpackHead<CrossedHead>(args);
}

/** An answer, as it crosses. Its status and headers are checked where it arrives. */
export function packResponse(response: HttpResponse | undefined): Uint8Array {
  if (typeof response !== "object" || response === null) {
    throw new TypeError(`expected a response of HTTP, not ${typeof response}`);
  }
  const { status = 200, headers = {}, body, stream = false } = response;
  if (body !== undefined && body !== null && !(body instanceof Uint8Array)) {
    throw new TypeError(`expected bytes as the body of a response, not ${typeof body}`);
  }
  const pairs = Object.entries(headers).map(([name, value]) => [name, String(value)]);
  return packHead({ status, headers: pairs, streams: stream }, stream || !body ? [] : [body]);
}
