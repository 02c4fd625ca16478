/**
 * Listeners of the contract that have no actors behind them: an author's files and application, and the few
 * routes of a registry before those.
 */
import type { CancellationToken } from "../../../index.js";
import { HttpResponseBodyStream } from "../bodies.js";
import { addressOf } from "../crossing.js";
import { dispatch } from "../environment.js";
import type { Exchange } from "../exchange.js";
import { once } from "../once.js";
import { httpRequest, packResponse, unpackRequest } from "../requests.js";
import { newToken } from "../token.js";
import type { ServeConfig } from "./config.js";
import { logLine, textOf } from "./log.js";
import { textResponse } from "./responses.js";
import { isRegistryPath, registryAnswer } from "./serverless.js";
import type { Open, RegistryState } from "./state.js";

/** Where to listen. */
export interface ListenerOptions {
  /** Default `0.0.0.0`. */
  readonly host?: string | null;
  readonly port: number;
  /** A folder whose files are served before anything else. */
  readonly publicDir?: string | null;
}

/** What an application is called with; its URL has no host of its own. */
export interface ApplicationRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly cancelToken: CancellationToken;
  readonly responseBodyStream: HttpResponseBodyStream;
}

/** What it gives: all of the answer, or its head. */
export interface ApplicationResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | null;
  readonly stream?: boolean;
}

/** Error-first, as all functions of the contract. */
export type ApplicationCallback = (
  error: null,
  request: ApplicationRequest,
) => Promise<ApplicationResponse>;

/** The longest body where nobody says, in bytes. */
const MAX_BODY = 16 * 1024 * 1024;

/** The numbers of applications begin behind those of the author's layer, which counts from 1. */
const numbers = once("contractApplications", () => ({ next: 1_000_000 }));

/** What is served. */
interface Served {
  readonly state: RegistryState;
  readonly config: ServeConfig;
  readonly application: ApplicationCallback | null | undefined;
  /** Whether a registry's own routes come first. */
  readonly registry: boolean;
}

/** Listens until the registry ends, and resolves then. */
export async function listen(open: Open, options: ListenerOptions, served: Served): Promise<void> {
  const number = numbers.next++;
  const { applications } = dispatch.http;
  applications.set(number, (packed, signal) => answer(served, packed, signal));
  try {
    const { publicDir } = options;
    await open.host.listen({
      host: await addressOf(options.host ?? "0.0.0.0"),
      port: options.port,
      application: number,
      applicationOnly: true,
      ...(publicDir ? { publicDir } : {}),
    });
    await served.state.over;
  } finally {
    applications.forget(number);
  }
}

async function answer(
  served: Served,
  packed: Uint8Array,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const { state, config, application, registry } = served;
  const limit = config.serverlessMaxStartPayloadBytes ?? MAX_BODY;
  const { head, body } = unpackRequest(packed);
  const exchange = dispatch.http.exchange(head.exchange);
  const url = `http://internal${head.uri}`;
  const { method, headers, bodyStream } = httpRequest(head, body, exchange);
  let streams = false;
  try {
    const sent = bodyStream === undefined ? Buffer.from(body) : await read(exchange, limit);
    if (sent === undefined || sent.byteLength > limit) {
      return packResponse(textResponse(413, "Payload Too Large"));
    }
    const request = { method, url, headers, body: sent };
    if (registry && isRegistryPath(url, config)) {
      return packResponse(registryAnswer(state, config, request));
    }
    if (!application) return packResponse(textResponse(404, "Not Found (RivetKit)"));
    const cancelToken = newToken();
    signal.addEventListener("abort", () => cancelToken.cancel(), { once: true });
    const responseBodyStream = new HttpResponseBodyStream(exchange);
    const response = await application(null, { ...request, cancelToken, responseBodyStream });
    streams = response.stream === true;
    if (streams) keepOpen(state, exchange, cancelToken);
    return packResponse(response);
  } catch (error) {
    logLine("error", "the application failed", { uri: head.uri, error: textOf(error) });
    return packResponse(textResponse(500, "Internal Server Error"));
  } finally {
    if (!streams) exchange.cancel();
  }
}

/** An answer in pieces ends with its client, or is broken off when the registry ends. */
function keepOpen(state: RegistryState, exchange: Exchange, cancelToken: CancellationToken): void {
  const close = () => {
    exchange.fail();
    cancelToken.cancel();
  };
  const over = () => {
    state.closing.delete(close);
    cancelToken.cancel();
  };
  state.closing.add(close);
  // An environment that ends has no client to hear of.
  exchange.closed().then(over, over);
}

/** All of a body; undefined where it is too long. */
async function read(exchange: Exchange, limit: number): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  let length = 0;
  for (let piece = await exchange.read(); piece !== null; piece = await exchange.read()) {
    length += piece.byteLength;
    if (length > limit) return undefined;
    pieces.push(Buffer.from(piece));
  }
  return Buffer.concat(pieces);
}
