// Calls over HTTP, as clients make them.

/**
 * Calls an action of an actor, which is made if it is missing; what the answer says, with its status
 * if that is no success.
 */
export async function call(url, name, key, action, args = [], { token, params } = {}) {
  const query = new URLSearchParams({
    "rvt-namespace": "default",
    "rvt-method": "getOrCreate",
    "rvt-runner": "default",
    ...(key.length === 0 ? {} : { "rvt-key": key.join(",") }),
    ...(token === undefined ? {} : { "rvt-token": token }),
  });
  const response = await fetch(`${url}/gateway/${name}/action/${action}?${query}`, {
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
