/**
 * `handleServerlessRequest()` of the contract: the few routes that a registry has within an author's own
 * server. Nothing starts actors from there, since they run in this process.
 */
import { timingSafeEqual } from "node:crypto";
import type { CancellationToken } from "../token.js";
import type { ServeConfig } from "./config.js";
import {
  health,
  jsonResponse,
  metadata,
  metrics,
  textResponse,
  type WholeResponse,
} from "./responses.js";
import type { RegistryState } from "./state.js";

/** A request, with its URL whole. */
export interface ServerlessRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** A part of an answer. */
export type StreamEvent =
  | { readonly kind: "chunk"; readonly chunk: Buffer }
  | { readonly kind: "end"; readonly error?: { group: string; code: string; message: string } };

/** Hears the parts of an answer one by one: the next is told when this has resolved. */
export type OnStreamEvent = (error: null, event: StreamEvent) => unknown;

/** How long browsers may keep what they asked beforehand, in seconds. */
const PREFLIGHT_AGE = "86400";

/** Answers with the head; the body is told behind it. */
export function serverlessAnswer(
  state: RegistryState,
  config: ServeConfig,
  request: ServerlessRequest,
  onStreamEvent: OnStreamEvent,
  cancelToken: CancellationToken | null | undefined,
): { status: number; headers: Record<string, string> } {
  const { status, headers, body } = registryAnswer(state, config, request);
  void tell(body, onStreamEvent, cancelToken);
  return { status, headers: { ...headers } };
}

/** The answer of a route within the base path, or without it, for pages of any origin. */
export function registryAnswer(
  state: RegistryState,
  config: ServeConfig,
  request: ServerlessRequest,
): WholeResponse {
  const headers = lowered(request.headers);
  const { headers: own, ...rest } = routed(state, config, { ...request, headers });
  return { ...rest, headers: { ...own, ...corsOf(request.method, headers) } };
}

function routed(
  state: RegistryState,
  config: ServeConfig,
  { method, url, headers, body }: ServerlessRequest,
): WholeResponse {
  if (method === "OPTIONS") return { status: 204, headers: {}, body: EMPTY };
  const path = pathOf(url, config);
  if (method === "GET" || method === "HEAD") {
    switch (path) {
      case "/":
        return textResponse(200, "This is a registry of actors on greenroom.\n");
      case "/health":
        return health(state);
      case "/metadata":
        return metadata(state);
      case "/metrics":
        return guardedMetrics(state, headers);
    }
  }
  if (path === "/start" && (method === "GET" || method === "POST")) {
    const limit = config.serverlessMaxStartPayloadBytes ?? Number.POSITIVE_INFINITY;
    if (body.byteLength > limit) {
      const message = `Incoming message too long. Received ${body.byteLength} bytes, limit is ${limit} bytes.`;
      return failure(400, "message", "incoming_too_long", message);
    }
    const message = "Actors run in this process: nobody else starts them.";
    return failure(400, "request", "invalid", message);
  }
  return textResponse(404, "Not Found (RivetKit)");
}

/** Whether a path is one of a registry's. */
export function isRegistryPath(url: string, config: ServeConfig): boolean {
  const base = baseOf(config);
  const { pathname } = new URL(url, "http://internal");
  if (base === "" && pathname === "/") return true;
  return ["", "/", "/health", "/metadata", "/metrics", "/start"].some(
    (route) => pathname === `${base}${route}`,
  );
}

function pathOf(url: string, config: ServeConfig): string {
  const base = baseOf(config);
  const { pathname } = new URL(url, "http://internal");
  const isWithin = base !== "" && (pathname === base || pathname.startsWith(`${base}/`));
  const path = isWithin ? pathname.slice(base.length) : pathname;
  return path === "" ? "/" : path;
}

function baseOf(config: ServeConfig): string {
  const trimmed = (config.serverlessBasePath ?? "/api/rivet").replace(/\/+$/, "");
  return trimmed === "" || trimmed.startsWith("/") ? trimmed : `/${trimmed}`;
}

/** Only where they were switched on, with the token that was chosen for them. */
function guardedMetrics(
  state: RegistryState,
  headers: Readonly<Record<string, string>>,
): WholeResponse {
  const token = process.env.RIVETKIT_METRICS_TOKEN;
  if (process.env.RIVETKIT_METRICS_ENABLED !== "1" || !token) {
    return textResponse(403, "metrics not enabled");
  }
  const [scheme, given = ""] = (headers.authorization ?? "").split(" ", 2);
  if (scheme?.toLowerCase() !== "bearer" || !isSame(given, token)) {
    return textResponse(401, "unauthorized");
  }
  return metrics(state);
}

/** How long it takes says nothing but whether the lengths are the same. */
function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}

function failure(status: number, group: string, code: string, message: string): WholeResponse {
  return jsonResponse(status, { group, code, message, metadata: null });
}

async function tell(
  body: Buffer,
  onStreamEvent: OnStreamEvent,
  cancelToken: CancellationToken | null | undefined,
): Promise<void> {
  try {
    if (body.byteLength > 0 && !cancelToken?.aborted()) {
      await onStreamEvent(null, { kind: "chunk", chunk: body });
    }
    if (!cancelToken?.aborted()) await onStreamEvent(null, { kind: "end" });
  } catch {
    // Whoever listened has gone, and says so by the token.
  }
}

function corsOf(method: string, headers: Readonly<Record<string, string>>): Record<string, string> {
  const { origin } = headers;
  const asked = headers["access-control-request-headers"];
  return {
    "access-control-allow-origin": origin ?? "*",
    "access-control-allow-credentials": "true",
    "access-control-expose-headers": "*",
    ...(origin === undefined ? {} : { vary: "Origin" }),
    ...(method === "OPTIONS"
      ? {
          "access-control-allow-methods": "GET, POST, PUT, DELETE, OPTIONS, PATCH",
          "access-control-max-age": PREFLIGHT_AGE,
          ...(asked === undefined ? {} : { "access-control-allow-headers": asked }),
        }
      : {}),
  };
}

function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

const EMPTY = Buffer.alloc(0);
