/** What is given to `createClient()`. */

import { checkKeys, describe } from "../definition/keys";
import { type EncodingName, encodings } from "./encoding";
import type { WebSocketClass } from "./socket";
import { platformTimers, type Timers } from "./timers";

/** Options of `createClient()`. */
export interface ClientOptions {
  /**
   * The URL of the server, `http` or `https`. It may hold a path, and `namespace:token@` before the host.
   * Default: in a page its own origin, elsewhere `http://localhost:6420`.
   */
  endpoint?: string | undefined;
  /** What `registry.listen({ token })` asks for. */
  token?: string | undefined;
  /** Default `default`. */
  namespace?: string | undefined;
  /**
   * How values travel. `"cbor"`, the default, has a form for all of them; `"json"` can be read in the tools
   * of a browser, and refuses what it has none for, such as maps.
   */
  encoding?: EncodingName | undefined;
  /** Sent with every request over HTTP; browsers cannot send any when they open a WebSocket. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Used in place of the global one. */
  fetch?: typeof fetch | undefined;
  /** Used in place of the global one, which Node.js has from version 22: that of the package `ws`. */
  webSocket?: WebSocketClass | undefined;
  /** Used in place of the platform's time and chance: for tests. */
  timers?: Timers | undefined;
}

/** Options as the rest of the client reads them. */
export interface Settings {
  /** Origin and path, without a slash at the end. */
  readonly base: string;
  readonly token: string | undefined;
  readonly namespace: string;
  readonly encoding: EncodingName;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof fetch;
  readonly webSocket: WebSocketClass | undefined;
  readonly timers: Timers;
}

const known = [
  "endpoint",
  "token",
  "namespace",
  "encoding",
  "headers",
  "fetch",
  "webSocket",
  "timers",
];

/** @throws TypeError that names the option. */
export function readOptions(given: string | ClientOptions | undefined): Settings {
  const options: ClientOptions =
    typeof given === "string" || given === undefined ? { endpoint: given } : given;
  checkOptions(options);
  const url = readEndpoint(options.endpoint ?? defaultEndpoint());
  const namespace = options.namespace ?? decodeURIComponent(url.username);
  return {
    base: url.origin + url.pathname.replace(/\/+$/, ""),
    token: options.token ?? (decodeURIComponent(url.password) || undefined),
    namespace: namespace || "default",
    encoding: options.encoding ?? "cbor",
    headers: options.headers ?? {},
    // Called as a method of `Settings`, that of a page refuses.
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    webSocket: options.webSocket ?? platformWebSocket(),
    timers: options.timers ?? platformTimers,
  };
}

function checkOptions(options: ClientOptions): void {
  checkKeys(options, { place: "createClient()", known });
  const encoding: unknown = options.encoding;
  if (encoding !== undefined && !Object.keys(encodings).includes(String(encoding))) {
    throw new TypeError(
      `encoding of createClient() is ${describe(encoding)}, not "cbor" or "json"`,
    );
  }
}

function platformWebSocket(): WebSocketClass | undefined {
  return (globalThis as { WebSocket?: WebSocketClass }).WebSocket;
}

function defaultEndpoint(): string {
  const page = (globalThis as { location?: { origin?: string } }).location?.origin;
  return page !== undefined && /^https?:/.test(page) ? page : "http://localhost:6420";
}

function readEndpoint(endpoint: unknown): URL {
  const wrong = (what: string): never => {
    throw new TypeError(`endpoint of createClient() is ${describe(endpoint)}, ${what}`);
  };
  let url: URL | undefined;
  try {
    url = typeof endpoint === "string" ? new URL(endpoint) : undefined;
  } catch {}
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return wrong("not the URL of a server, such as http://localhost:6420");
  }
  if (url.search !== "" || url.hash !== "") wrong("which has a query or a fragment");
  if (url.password !== "" && url.username === "") wrong("with a token and no namespace before it");
  return url;
}
