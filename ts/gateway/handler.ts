/** `registry.handler()`: the standard `Request` in, the standard `Response` out. */

import { describe } from "../definition/keys";
import type { Door } from "./door";
import { INLINE } from "./message";

/** Statuses whose responses have no body. */
const EMPTY = [101, 204, 205, 304];

/** Has the actors behind `door` answer a request. */
export async function handle(door: Door, request: Request): Promise<Response> {
  checkRequest(request);
  const url = new URL(request.url);
  const path = url.pathname + url.search;
  const headers: [string, string][] = [...request.headers];
  if (!request.headers.has("host")) headers.push(["host", url.host]);
  // What is not under the base path is taken as it is, for frameworks that cut it off themselves.
  const uri = door.within(path) ?? path;
  const { method, signal } = request;
  const answered = await door.ask({ method, uri, headers }, await bodyOf(request), signal);
  const body = EMPTY.includes(answered.status)
    ? null
    : (answered.body as ConstructorParameters<typeof Response>[0]);
  return new Response(body, { status: answered.status, headers: answered.headers });
}

function checkRequest(request: unknown): asserts request is Request {
  const { url, method, headers } = (request ?? {}) as Partial<Request>;
  if (typeof url !== "string" || typeof method !== "string" || headers === undefined) {
    throw new TypeError(`handler() was given ${describe(request)}, not a Request`);
  }
}

async function bodyOf(request: Request) {
  if (request.body === null || request.body === undefined) return undefined;
  const length = Number(request.headers.get("content-length") ?? Number.NaN);
  if (length <= INLINE) return new Uint8Array(await request.arrayBuffer());
  return request.body.getReader();
}
