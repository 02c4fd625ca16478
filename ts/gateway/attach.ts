/**
 * `registry.attach()`: the actors within a `node:http` server that the author runs.
 *
 * 1. What is not under the base path goes where it went before, also to listeners that come later.
 * 2. An upgrade is a connection of the gateway's: its bytes are carried there and back, and neither side
 *    is read faster than the other takes them.
 * 3. An upgrade that nobody takes goes the way of other requests, as it does without us.
 */

import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";

import { describe } from "../definition/keys";
import { isRivetErrorCode, messageOf } from "../errors";
import type { Logging } from "../log";
import { dispatch } from "../native-half";
import type { Door } from "./door";
import { INLINE, type Pieces } from "./message";

/** Serves what comes to `server` for the actors behind `door`; returns how to stop that. */
export function attach(server: Server, door: Door, logging: Logging): () => void {
  checkServer(server);
  const failed = (error: unknown): void => {
    logging.write("error", {}, { msg: `a request failed: ${messageOf(error)}`, error });
  };
  let stopped = false;
  const emit = server.emit;
  const patched = function (this: Server, event: string, ...args: unknown[]): boolean {
    const isAsked = event === "request" && !stopped;
    const uri = isAsked ? door.within((args[0] as IncomingMessage).url ?? "") : undefined;
    if (uri === undefined) return Reflect.apply(emit, this, [event, ...args]);
    const [request, response] = args as [IncomingMessage, ServerResponse];
    answer(door, uri, request, response).catch((error) => {
      const isClients = isRivetErrorCode(error, "actor", "invalid_request");
      if (!isClients) failed(error);
      if (response.headersSent) response.destroy();
      else response.writeHead(isClients ? 400 : 500).end();
    });
    return true;
  };
  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const uri = door.within(request.url ?? "");
    if (uri !== undefined && isWebSocket(request)) {
      carry(door, uri, request, socket, head).catch((error) => {
        failed(error);
        socket.destroy();
      });
    } else if (uri !== undefined || isOurs(server, upgrade, request)) {
      giveBack(server, request, socket, head);
    }
  };
  doors.set(upgrade, door);
  server.emit = patched as Server["emit"];
  server.on("upgrade", upgrade);
  return () => {
    stopped = true;
    server.off("upgrade", upgrade);
    // Whoever came behind us and took our place as the one before him goes on to.
    if (server.emit === (patched as Server["emit"])) server.emit = emit;
  };
}

/** The doors of those who listen for upgrades here. */
const doors = new WeakMap<object, Door>();

/** Whether `upgrade` is the one of us to deal with a request that nobody takes. */
function isOurs(server: Server, upgrade: object, request: IncomingMessage): boolean {
  const listeners = server.listeners("upgrade");
  const takes = (listener: object): boolean => {
    const door = doors.get(listener);
    return door === undefined || door.within(request.url ?? "") !== undefined;
  };
  return listeners[0] === upgrade && !listeners.some(takes);
}

function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === "websocket";
}

/** Has the server take a request as it does where nobody listens for upgrades: as any other. */
function giveBack(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const kept = headersOf(request).filter(([name]) => !/^(upgrade|connection)$/i.test(name));
  const lines = kept.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const first = `${request.method} ${request.url} HTTP/1.1\r\n${lines}connection: close\r\n\r\n`;
  socket.unshift(Buffer.concat([Buffer.from(first, "latin1"), head]));
  server.emit("connection", socket);
}

function checkServer(server: unknown): asserts server is Server {
  const { emit, on, listenerCount } = (server ?? {}) as Partial<Server>;
  if ([emit, on, listenerCount].some((method) => typeof method !== "function")) {
    throw new TypeError(`attach() was given ${describe(server)}, not a server of node:http`);
  }
}

async function answer(
  door: Door,
  uri: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => {
    if (!response.writableEnded) gone.abort(new DOMException("the client has gone", "AbortError"));
  });
  const asked = { method: request.method ?? "GET", uri, headers: headersOf(request) };
  let answered: Awaited<ReturnType<Door["ask"]>>;
  try {
    answered = await door.ask(asked, await bodyOf(request), gone.signal);
  } catch (error) {
    if (gone.signal.aborted) return;
    throw error;
  }
  const { status, headers, body } = answered;
  for (const [name, value] of headers) response.appendHeader(name, value);
  response.writeHead(status);
  if (body instanceof Uint8Array) {
    response.end(body);
    return;
  }
  const reader = body.getReader();
  gone.signal.addEventListener("abort", () => void reader.cancel().catch(() => {}), { once: true });
  // Events have to arrive before there is a piece.
  response.flushHeaders();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (!response.write(value)) await once(response, "drain", { signal: gone.signal });
    }
  } catch (error) {
    if (gone.signal.aborted) return;
    throw error;
  }
  response.end();
}

function headersOf({ rawHeaders }: IncomingMessage): [string, string][] {
  const headers: [string, string][] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    headers.push([rawHeaders[at] as string, rawHeaders[at + 1] as string]);
  }
  return headers;
}

async function bodyOf(request: IncomingMessage): Promise<Uint8Array | Pieces | undefined> {
  const { "content-length": given, "transfer-encoding": coding } = request.headers;
  if (given === undefined && coding === undefined) return undefined;
  if (given !== undefined && Number(given) <= INLINE) {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    return Buffer.concat(pieces);
  }
  const pieces = request.iterator({ destroyOnReturn: false });
  const body = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      // What is left has to be read, or the next request on the connection never is.
      cancel: async () => {
        await pieces.return?.();
        request.resume();
      },
    },
    { highWaterMark: 0 },
  );
  return body.getReader();
}

/** Carries the bytes of an upgrade (2). */
async function carry(
  door: Door,
  uri: string,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  // What fails shows where it is read and written.
  socket.on("error", () => {});
  const tunnel = dispatch.http.tunnel(await door.gateway(), request.socket.remoteAddress);
  const lines = headersOf(request).map(([name, value]) => `${name}: ${value}\r\n`);
  const first = `${request.method} ${uri} HTTP/1.1\r\n${lines.join("")}\r\n`;
  const outwards = async (): Promise<void> => {
    await tunnel.write(Buffer.concat([Buffer.from(first, "latin1"), head]));
    for await (const piece of socket) await tunnel.write(piece as Buffer);
    await tunnel.write(null);
  };
  const inwards = async (): Promise<void> => {
    for (let piece = await tunnel.read(); piece !== null; piece = await tunnel.read()) {
      if (!socket.write(piece)) await once(socket, "drain");
    }
    socket.end();
  };
  // Either side may go first, and takes the other one along.
  const sent = outwards().catch(() => {});
  try {
    await Promise.race([inwards().catch(() => {}), closed(socket)]);
  } finally {
    tunnel.letGo();
    // Behind what was written; a client that says nothing more is not waited for.
    if (socket instanceof Socket) socket.destroySoon();
    else socket.end(() => socket.destroy());
  }
  await sent;
}

function closed(socket: Duplex): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    socket.once("close", resolve);
  });
}
