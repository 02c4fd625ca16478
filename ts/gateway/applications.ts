/** What an author's server does with requests that are for no actor: `application` of `listen()`. */

import { describe } from "../definition/keys";
import type { Logging } from "../log";
import { dispatch, once } from "../native-half";
import { type Begun, checkResponse, pack, requestOf, respond, unpack } from "./message";

/** Answers requests, as Hono's `app` and others do. */
export interface ApplicationHandler {
  fetch(request: Request): Response | Promise<Response>;
}

/** The numbers of applications, by where they listen: the same place has the same one. */
const numbers = once("applications", () => new Map<string, number>());

/** Has `application` answer what comes in at `place`, in the place of what did so far. */
export function install(place: string, application: ApplicationHandler, logging: Logging): number {
  const number = numbers.get(place) ?? numbers.size + 1;
  numbers.set(place, number);
  dispatch.http.applications.set(number, (bytes, signal) =>
    answer(application, logging, bytes, signal),
  );
  return number;
}

async function answer(
  application: ApplicationHandler,
  logging: Logging,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const { head, body } = unpack(bytes);
  const exchange = dispatch.http.exchange(head.exchange);
  const gone = new AbortController();
  let streams = false;
  const failed = (error: unknown): void => {
    logging.write("error", { uri: head.uri }, { msg: "the application failed", error });
  };
  try {
    const request = requestOf(head, body, exchange, AbortSignal.any([signal, gone.signal]));
    const response = await application.fetch(request);
    checkResponse(response, "the application");
    const begin = (rest: Begun): void => {
      streams = true;
      respond(exchange, rest, gone).catch(failed);
    };
    return await pack(response, { begin });
  } catch (error) {
    failed(error);
    throw error;
  } finally {
    // The body of the answer may be made of that of the request.
    if (!streams) exchange.cancel();
  }
}

/** Checks what was given as `application`. */
export function readApplication(given: unknown): ApplicationHandler | undefined {
  if (given === undefined) return undefined;
  const fetch = (given as { fetch?: unknown } | null)?.fetch;
  if (typeof fetch !== "function") {
    throw new TypeError(
      `application of listen() is ${describe(given)}, not an object with a function fetch(request)`,
    );
  }
  return given as ApplicationHandler;
}
