/**
 * Listeners of the contract that have no actors behind them: an author's files and application, and the few
 * routes of a registry before those.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { CancellationToken } from "../../../index.js";
import type { Application } from "../applications.js";
import { HttpResponseBodyStream } from "../bodies.js";
import { dispatch } from "../environment.js";
import type { Exchange } from "../exchange.js";
import type { Listening } from "../host.js";
import { once } from "../once.js";
import { httpRequest, packResponse, unpackRequest } from "../requests.js";
import { newToken } from "../token.js";
import type { ServeConfig } from "./config.js";
import { textResponse, type WholeResponse } from "./responses.js";
import { isRegistryPath, routed } from "./serverless.js";
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

/** Listens until the registry ends; `registry`: whether its own routes come first. */
export async function listen(
  open: Open,
  state: RegistryState,
  options: ListenerOptions,
  config: ServeConfig,
  application: ApplicationCallback | null | undefined,
  registry: boolean,
): Promise<Listening> {
  const number = numbers.next++;
  const limit = config.serverlessMaxStartPayloadBytes ?? MAX_BODY;
  dispatch.http.applications.set(number, answers(state, config, application, registry, limit));
  const { publicDir } = options;
  return open.host.listen({
    host: await addressOf(options.host ?? "0.0.0.0"),
    port: options.port,
    application: number,
    applicationOnly: true,
    ...(publicDir ? { publicDir } : {}),
  });
}

function answers(
  state: RegistryState,
  config: ServeConfig,
  application: ApplicationCallback | null | undefined,
  registry: boolean,
  limit: number,
): Application {
  return async (packed, signal) => {
    const { head, body } = unpackRequest(packed);
    const exchange = dispatch.http.exchange(head.exchange);
    const url = `http://internal${head.uri}`;
    const { method, headers, bodyStream } = httpRequest(head, body, exchange);
    let streams = false;
    try {
      const sent = bodyStream === undefined ? Buffer.from(body) : await read(exchange, limit);
      if (sent === undefined || sent.byteLength > limit) {
        return whole(textResponse(413, "Payload Too Large"));
      }
      if (registry && isRegistryPath(url, config)) {
        return whole(routed(state, config, { method, url, headers, body: sent }));
      }
      if (!application) return whole(textResponse(404, "Not Found (RivetKit)"));
      const cancelToken = newToken();
      signal.addEventListener("abort", () => cancelToken.cancel(), { once: true });
      const responseBodyStream = new HttpResponseBodyStream(exchange);
      const response = await application(null, {
        method,
        url,
        headers,
        body: sent,
        cancelToken,
        responseBodyStream,
      });
      streams = response.stream === true;
      if (streams) void exchange.closed().then(() => cancelToken.cancel());
      return packResponse(response);
    } catch {
      // What failed is the author's own: the layer in front of this logs it, and says no more than this.
      return whole(textResponse(500, "Internal Server Error"));
    } finally {
      if (!streams) exchange.cancel();
    }
  };
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

const whole = (response: WholeResponse) => packResponse(response);

/** IPv4 where a name leads to both. */
async function addressOf(host: string): Promise<string> {
  if (isIP(host) !== 0) return host;
  const found = await lookup(host, { all: true });
  return (found.find(({ family }) => family === 4) ?? found[0])?.address ?? host;
}
