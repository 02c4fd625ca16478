// Calls over HTTP, as clients make them.

/** The URL of something within an actor, which is made if it is missing. */
export function actorUrl(url, name, key, path, { token } = {}) {
  const query = new URLSearchParams({
    "rvt-namespace": "default",
    "rvt-method": "getOrCreate",
    "rvt-runner": "default",
    ...(key.length === 0 ? {} : { "rvt-key": key.join(",") }),
    ...(token === undefined ? {} : { "rvt-token": token }),
  });
  return `${url}/gateway/${name}/${path}?${query}`;
}

/**
 * Calls an action of an actor, which is made if it is missing; what the answer says, with its status
 * if that is no success.
 */
export async function call(url, name, key, action, args = [], { token, params } = {}) {
  const response = await fetch(actorUrl(url, name, key, `action/${action}`, { token }), {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-rivet-encoding": "json",
      ...(params === undefined ? {} : { "x-rivet-conn-params": JSON.stringify(params) }),
    },
    body: JSON.stringify({ args }),
  });
  const body = await response.json();
  return response.ok ? body : { status: response.status, ...body };
}
