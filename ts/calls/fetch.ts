/**
 * `fetch` of a handle: what a request over HTTP is to the actor, without a socket.
 *
 * 1. The hooks of connections run, as they do for every request.
 * 2. It leaves once what its caller changed is durable.
 */

import { paramsHeader, readRequest } from "../client/request";
import { decode } from "../codec";
import { toCompat } from "../codec/compat";
import { readingArgument } from "../errors";
import { Door } from "../gateway/door";
import { handle } from "../gateway/handler";
import type { Host } from "../native-half";
import type { Reach } from "./reach";

/** The way in of each host, which only this process knows. */
const doors = new WeakMap<Host, Door>();

/** Asks `onRequest` of what `reach` reaches. It never throws synchronously. */
export async function fetchThrough(
  reach: Reach,
  input: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const { path, request } = await readRequest(input, init);
  const { signal } = reach;
  signal?.throwIfAborted();
  const host = await reach.arrive();
  const { id } = await reach.resolve();
  const headers = new Headers(request.headers);
  headers.set("x-rivet-encoding", "json");
  const params = await reach.params?.();
  if (params !== undefined) {
    const passed = readingArgument(() => toCompat(decode(params), "params"));
    headers.set("x-rivet-conn-params", paramsHeader(passed));
  }
  const signals = [signal, request.signal].filter((one) => one != null);
  const asked = new Request(`http://localhost/gateway/${id}${path}`, {
    ...request,
    headers,
    ...(signals.length > 0 && { signal: AbortSignal.any(signals) }),
    ...(request.body != null && { duplex: "half" }),
  } as RequestInit);
  return handle(doorOf(host), asked);
}

function doorOf(host: Host): Door {
  let door = doors.get(host);
  if (door === undefined) {
    const guard = { token: undefined, origins: [], hosts: [], exposeErrors: false };
    door = new Door(async () => host, "", guard);
    doors.set(host, door);
  }
  return door;
}
