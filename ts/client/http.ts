/**
 * Requests to the server.
 *
 * 1. An answer that is no success becomes an error with the `group` and `code` that it names.
 * 2. A request is sent again only where the answer says that nothing was done. One that got no answer is
 *    not: it may have been carried out.
 */

import type { RivetError } from "../errors";
import { onAbort, type Stop } from "../native/listen";
import type { Encoded } from "./encoding";
import { encodings } from "./encoding";
import { clientError, errorOf, nameOf } from "./errors";
import type { Settings } from "./options";
import { Backoff, pause } from "./timers";

/** What is asked of the server. */
export interface Request {
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Encoded | undefined;
  readonly stop?: Stop | undefined;
}

/** Answers after which nothing has been done: the actor was on its way to another state. */
const NOTHING_DONE = new Set([
  "actor.starting",
  "actor.stopping",
  "actor.restarting",
  "guard.service_unavailable",
]);

const TRIES = 6;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** Whether it is no use to give up after such an error: the same may succeed a moment later. */
export function mayPass(error: unknown): boolean {
  return NOTHING_DONE.has(nameOf(error));
}

/** What `attempt` gives, which is tried again after {@link NOTHING_DONE}. */
export async function withRetries<T>(
  settings: Settings,
  stop: Stop | undefined,
  attempt: () => Promise<T>,
): Promise<T> {
  const backoff = new Backoff(settings.timers, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  for (let left = TRIES - 1; ; left -= 1) {
    try {
      return await attempt();
    } catch (error) {
      if (left === 0 || !mayPass(error)) throw error;
    }
    await pause(settings.timers, backoff.take(), stop);
  }
}

/**
 * Sends one request to `path` below the base and resolves with whatever the answer is.
 *
 * @throws `client.unreachable` when there is none, and the reason of the signal.
 */
export async function exchange(
  settings: Settings,
  path: string,
  request: RequestInit & { headers?: Record<string, string> | Headers },
): Promise<Response> {
  const headers = new Headers(settings.headers);
  if (settings.token !== undefined) headers.set("x-rivet-token", settings.token);
  new Headers(request.headers).forEach((value, name) => {
    headers.set(name, value);
  });
  try {
    return await settings.fetch(settings.base + path, { ...request, headers });
  } catch (error) {
    const { signal } = request;
    if (signal?.aborted) throw signal.reason;
    throw clientError("unreachable", `no answer from ${settings.base}`, error);
  }
}

/** Sends a request of the protocol; resolves with the message in the answer. */
export async function ask(settings: Settings, path: string, request: Request): Promise<unknown> {
  const { method, headers, body, stop } = request;
  stop?.throwIfAborted();
  // One of its own for each request: how many may listen to a signal is its owner's to say.
  const ends = new AbortController();
  const { signal } = ends;
  const heard = stop && onAbort(stop, () => ends.abort(stop.reason));
  try {
    const init = {
      method,
      signal,
      ...(headers && { headers }),
      ...(body !== undefined && { body }),
    };
    const response = await exchange(settings, path, init);
    return await messageIn(response, signal);
  } finally {
    heard?.();
  }
}

async function messageIn(response: Response, signal: AbortSignal): Promise<unknown> {
  const bytes = await bodyOf(response, signal);
  const isJson = response.headers.get("content-type")?.includes("application/json") ?? false;
  const message = (): unknown => encodings[isJson ? "json" : "cbor"].read(bytes);
  if (response.ok) return message();
  throw refusal(response, message);
}

async function bodyOf(response: Response, signal: AbortSignal): Promise<ArrayBuffer> {
  try {
    return await response.arrayBuffer();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw clientError("unreachable", "the answer broke off", error);
  }
}

function refusal(response: Response, message: () => unknown): RivetError {
  const from = {
    statusCode: response.status,
    rayId: response.headers.get("x-rivet-ray-id") ?? undefined,
  };
  try {
    const error = errorOf(message(), from);
    if (error !== undefined) return error;
  } catch {
    // Something between here and the server answered: a proxy, or another program.
  }
  return clientError("malformed_response", `the server answered with status ${response.status}`);
}
