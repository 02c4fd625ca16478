/** Requests for `onRequest`, as a handle makes them. */

/**
 * The path within the actor, and the rest of what is asked for. Of a URL only path and query count: the
 * rest is where the actor is.
 */
export async function readRequest(
  input: string | URL | Request,
  init: RequestInit = {},
): Promise<{ path: string; request: RequestInit }> {
  const url = new URL(input instanceof Request ? input.url : String(input), "http://actor");
  const path = `/request${url.pathname}${url.search}`;
  if (!(input instanceof Request)) return { path, request: init };
  const body = input.body === null ? undefined : await input.arrayBuffer();
  const { method, headers, signal } = input;
  return { path, request: { method, headers, signal, ...(body && { body }), ...init } };
}

/** Parameters of a connection as a header has them: characters beyond ASCII are escaped. */
export function paramsHeader(params: unknown): string {
  return JSON.stringify(params).replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
