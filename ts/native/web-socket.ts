/**
 * The contract's `onWebSocket`, and what its `WebSocket` has beyond Rust: what happens to a raw socket comes
 * as calls under names that no action can have, and becomes events here.
 *
 * 1. `onWebSocket` is called before any event of its socket is told, and an end is told once: by the client's
 *    close, or with the connection.
 * 2. The call that hands a socket over is answered when the first part of `onWebSocket` has run; what fails
 *    behind that closes the socket.
 */
import {
  type ConnHandle,
  WebSocket,
  webSocketClose,
  webSocket as webSocketOf,
} from "../../index.js";
import type { ActionPayload } from "./actions.js";
import type { ActorBag } from "./bags.js";
import type { ConnectionRequest } from "./connections.js";
import { recordOf } from "./errors.js";
import type { Callback, Callbacks } from "./factory.js";
import { once } from "./once.js";

/** What happens to a socket. */
export type WebSocketEvent =
  | { kind: "message"; binary: false; data: string; messageIndex: number }
  | { kind: "message"; binary: true; data: Buffer; messageIndex: number }
  | { kind: "close"; code: number; reason: string; wasClean: boolean };

/** What `onWebSocket` is called with. */
export interface WebSocketPayload {
  readonly ctx: ActionPayload["ctx"];
  readonly conn: ConnHandle;
  readonly ws: WebSocket;
  readonly request: ConnectionRequest | undefined;
}

declare module "../../index.js" {
  interface WebSocket {
    /** Closes the socket behind everything that was sent. */
    close(code?: number | null, reason?: string | null): Promise<void>;
    /** Has `callback` called with each event from now on, in the place of what was called so far. */
    setEventCallback(callback: (event: WebSocketEvent) => void): void;
  }
}

const OPEN = "\u0003open";
const MESSAGE = "\u0003message";
const CLOSED = "\u0003closed";

/** The bytes before the data of a message: its socket, its number, and whether it is text. */
const HEAD_LENGTH = 11;

/** A socket that is open. */
interface Open {
  readonly bag: ActorBag;
  readonly number: number;
  readonly conn: string;
  callback?: (event: WebSocketEvent) => void;
}

/** Those of a generation, by their numbers. */
const sockets = once("sockets", () => new WeakMap<ActorBag, Map<number, Open>>());
/** Behind each object. */
const known = once("socketObjects", () => new WeakMap<WebSocket, Open>());

/** Functions with what their `onWebSocket` needs; the same ones without one. */
export function withSockets(callbacks: Callbacks): Callbacks {
  const written = callbacks.onWebSocket as Callback<WebSocketPayload> | undefined;
  if (typeof written !== "function") return callbacks;
  const gone = (callbacks.onDisconnectFinal ?? callbacks.onDisconnect) as
    | Callback<{ bag: ActorBag; conn: ConnHandle }>
    | undefined;
  const actions: Record<string, Callback<ActionPayload>> = {
    [OPEN]: (_, payload) => opened(written, payload),
    [MESSAGE]: (_, payload) => heard(payload),
    [CLOSED]: (_, payload) => {
      const { socket, code, reason } = json(payload.args);
      ended(payload.bag, socket, code, reason);
    },
  };
  return {
    ...callbacks,
    actions: Object.assign(Object.create(null), callbacks.actions, actions),
    onDisconnectFinal: ((error: null, payload: { bag: ActorBag; conn: ConnHandle }) => {
      const conn = payload.conn.id();
      for (const [number, open] of [...(sockets.get(payload.bag) ?? [])]) {
        if (open.conn === conn) ended(payload.bag, number, 1000, "");
      }
      return gone?.(error, payload);
    }) as Callback,
  };
}

function opened(written: Callback<WebSocketPayload>, payload: ActionPayload): void {
  const { bag, ctx } = payload;
  // They come over connections only.
  const conn = payload.conn as ConnHandle;
  const { socket: number } = json(payload.args);
  const open: Open = { bag, number, conn: conn.id() };
  const ws = webSocketOf(bag.actor, number);
  known.set(ws, open);
  let all = sockets.get(bag);
  if (all === undefined) {
    all = new Map();
    sockets.set(bag, all);
  }
  all.set(number, open);
  const request = conn.request();
  const told = { ctx, conn, ws, request: request === null ? undefined : JSON.parse(request) };
  try {
    const running = Promise.resolve(written(null, told)).catch((thrown: unknown) => {
      const { group, code } = recordOf(thrown);
      return ws.close(1011, `${group}.${code}`);
    });
    ctx.keepAwake(running);
  } catch (thrown) {
    all.delete(number);
    throw thrown;
  }
}

function heard({ bag, args }: ActionPayload): void {
  const view = new DataView(args.buffer, args.byteOffset, args.byteLength);
  const open = sockets.get(bag)?.get(Number(view.getBigUint64(0, true)));
  const messageIndex = view.getUint16(8, true);
  // Of memory of its own: what came is a part of a batch.
  const data = Buffer.from(args.subarray(HEAD_LENGTH));
  open?.callback?.(
    view.getUint8(10) === 1
      ? { kind: "message", binary: false, data: data.toString("utf8"), messageIndex }
      : { kind: "message", binary: true, data, messageIndex },
  );
}

/** See (1). */
function ended(bag: ActorBag, number: number, code: number, reason: string): void {
  const all = sockets.get(bag);
  const open = all?.get(number);
  if (open === undefined) return;
  all?.delete(number);
  open.callback?.({ kind: "close", code, reason, wasClean: code === 1000 });
}

function json(args: Uint8Array) {
  return JSON.parse(Buffer.from(args.buffer, args.byteOffset, args.byteLength).toString("utf8"));
}

const methods = {
  async close(this: WebSocket, code?: number | null, reason?: string | null): Promise<void> {
    const open = openOf(this);
    webSocketClose(open.bag.actor, open.number, code ?? 1000, reason ?? "");
  },
  setEventCallback(this: WebSocket, callback: (event: WebSocketEvent) => void): void {
    openOf(this).callback = callback;
  },
};

function openOf(socket: WebSocket): Open {
  const open = known.get(socket);
  if (open === undefined) throw new TypeError("not a socket that was handed to an actor here");
  return open;
}

// Once, also where this module is loaded twice in one environment.
if (!Object.hasOwn(WebSocket.prototype, "close")) Object.assign(WebSocket.prototype, methods);
