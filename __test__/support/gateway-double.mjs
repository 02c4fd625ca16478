// A server of the protocol that does what a test tells it, for what a real one does not do on demand:
// refusing, falling silent, losing a socket.

import { once } from "node:events";
import { createServer } from "node:http";

import { Encoder } from "cbor-x";
import { WebSocketServer } from "ws";

const cbor = new Encoder({ useRecords: false, mapsAsObjects: true, tagUint8Array: true });

/** The encodings, by name. */
const codecs = {
  cbor: { type: "application/octet-stream", read: (data) => cbor.decode(data), write: cbor.encode },
  json: {
    type: "application/json",
    read: (data) => JSON.parse(data),
    write: (value) => Buffer.from(JSON.stringify(value, bigints)),
  },
};
const bigints = (_key, value) =>
  typeof value === "bigint" ? ["$BigInt", value.toString()] : value;

/** An answer of the double: `fail("actor", "not_found", 404)`. */
export const fail = (group, code, status = 400, more = {}) => ({
  http: status,
  error: { group, code, message: `${group} ${code}`, ...more },
});

/**
 * Starts a double.
 *
 * `answer({method, url, headers, message})` gives `{output}` or whatever else the body is, or what
 * {@link fail} gives. `accept(socket)` gets each socket: `frame(tag, val)` sends, `next(tag)` waits for a
 * frame, `close(code, reason)`, `offered` is what the client offered. It answers `Init` unless it takes
 * care of that itself by returning false.
 */
export async function gatewayDouble({ answer = () => ({ output: null }), accept } = {}) {
  const requests = [];
  const sockets = [];
  const http = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    const { method, url, headers } = request;
    const codec = codecs[headers["x-rivet-encoding"] ?? "json"];
    const asked = { method, url, headers, body };
    if (body.length > 0 && !url.includes("/request")) asked.message = codec.read(body);
    requests.push(asked);
    const { http: status = 200, error, raw, ...message } = await answer(asked);
    if (raw !== undefined) {
      response.writeHead(status, { "content-type": "text/plain" }).end(raw);
    } else if (error !== undefined) {
      response.writeHead(status, { "content-type": "application/json", "x-rivet-ray-id": "ray1" });
      response.end(JSON.stringify(error));
    } else {
      response.writeHead(status, { "content-type": codec.type }).end(codec.write(message));
    }
  });
  const upgrades = new WebSocketServer({ server: http, handleProtocols: () => "rivet" });
  upgrades.on("connection", (ws, request) => {
    const offered = request.headers["sec-websocket-protocol"].split(",").map((part) => part.trim());
    const encoding = offered.find((part) => part.startsWith("rivet_encoding."))?.slice(15);
    const socket = doubleSocket(ws, codecs[encoding], { url: request.url, offered });
    sockets.push(socket);
    if (accept?.(socket, sockets.length) === false) return;
    socket.frame("Init", { actorId: "actor1", connectionId: `conn${sockets.length}` });
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  return {
    url: `http://127.0.0.1:${http.address().port}`,
    requests,
    sockets,
    async close() {
      for (const ws of upgrades.clients) ws.terminate();
      http.closeAllConnections();
      http.close();
    },
  };
}

function doubleSocket(ws, codec, { url, offered }) {
  const frames = [];
  let arrived = () => {};
  ws.on("message", (data) => {
    frames.push(codec.read(data).body);
    arrived();
  });
  return {
    url,
    offered,
    frames,
    frame: (tag, val) =>
      ws.send(codec.write({ body: { tag, val } }), { binary: codec === codecs.cbor }),
    raw: (data) => ws.send(data),
    close: (code, reason) => ws.close(code, reason),
    terminate: () => ws.terminate(),
    closed: once(ws, "close"),
    /** The next frame that nobody waited for. */
    async next() {
      while (frames.length === 0) {
        await new Promise((resolve) => {
          arrived = resolve;
        });
      }
      const { tag, val } = frames.shift();
      return { tag, ...val };
    },
  };
}

/** Time and chance that a test moves. */
export function manualTimers() {
  let timers = [];
  let now = 0;
  return {
    setTimeout(run, ms) {
      const timer = { at: now + ms, run };
      timers.push(timer);
      return timer;
    },
    clearTimeout(timer) {
      timers = timers.filter((each) => each !== timer);
    },
    /** Waits are never shortened. */
    random: () => 1,
    /** How long until each timer fires. */
    waits: () => timers.map(({ at }) => at - now).sort((a, b) => a - b),
    advance(ms) {
      now += ms;
      for (const timer of timers.filter(({ at }) => at <= now)) {
        timers = timers.filter((each) => each !== timer);
        timer.run();
      }
    },
  };
}
