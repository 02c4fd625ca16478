/**
 * Raw sockets of clients, for an author's `onWebSocket`. What happens to them comes as calls under names that
 * no action can have.
 *
 * 1. A generation hears of a socket before its messages, and of its end once: by the client's close, or
 *    with its connection.
 * 2. The call that hands a socket over is answered when the first part of `onWebSocket` has run; what fails
 *    behind that closes the socket.
 */

import { forCaller } from "../actors/action";
import type { Live } from "../actors/live";
import { isRivetError, messageOf } from "../errors";
import type { NativeConnection } from "../native-half";
import { ConnectionContext, type Head } from "./hooks";
import { WebSocket } from "./web-socket";

/** The names under which what happens to sockets travels. Names of actions have no control characters. */
export const OPENED = "\u0003open";
export const MESSAGE = "\u0003message";
export const CLOSED = "\u0003closed";

/** The bytes before the data of a message: its socket, its number, and whether it is text. */
const HEAD_LENGTH = 11;

/** The sockets of one generation. */
export class Sockets {
  readonly #live: Live;
  readonly #open = new Map<number, { readonly socket: WebSocket; readonly conn: string }>();

  constructor(live: Live) {
    this.#live = live;
  }

  /** A socket is handed over. */
  async opened(handle: NativeConnection, args: Uint8Array): Promise<undefined> {
    const live = this.#live;
    const { socket: number } = json(args) as { socket: number };
    const request = JSON.parse(handle.request() ?? "null") as Head | null;
    const url = new URL(request?.uri ?? "/", "http://127.0.0.1");
    url.protocol = "ws:";
    const socket = new WebSocket(live, number, url.href);
    this.#open.set(number, { socket, conn: handle.id() });
    const payload = { conn: handle, request: request ?? undefined, eventName: null };
    const written = live.definition.hook("onWebSocket");
    try {
      await live.during("onWebSocket", () => {
        const given = written?.(new ConnectionContext(live, payload, true), socket);
        if (given instanceof Promise) this.#follow(socket, given);
        else WebSocket.settled(socket);
      });
    } catch (thrown) {
      this.#open.delete(number);
      throw forCaller(thrown, live, true);
    }
    return undefined;
  }

  /** A message has come. */
  async message(args: Uint8Array): Promise<undefined> {
    const view = new DataView(args.buffer, args.byteOffset, args.byteLength);
    const found = this.#open.get(Number(view.getBigUint64(0, true)));
    if (found === undefined) return undefined;
    const index = view.getUint16(8, true);
    const bytes = args.subarray(HEAD_LENGTH);
    const data =
      view.getUint8(10) === 1
        ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")
        : new Uint8Array(bytes).buffer;
    await this.#live.during("message of a socket", () => {
      WebSocket.received(found.socket, data, index);
    });
    return undefined;
  }

  /** The client has closed one, or it was closed here. */
  async closed(args: Uint8Array): Promise<undefined> {
    const { socket, code, reason } = json(args) as { socket: number; code: number; reason: string };
    await this.#end(socket, code, reason);
    return undefined;
  }

  /** A connection is gone, and its sockets with it. */
  async gone(conn: string): Promise<void> {
    for (const [number, found] of [...this.#open]) {
      if (found.conn === conn) await this.#end(number, 1000, "");
    }
  }

  async #end(number: number, code: number, reason: string): Promise<void> {
    const found = this.#open.get(number);
    if (found === undefined) return;
    this.#open.delete(number);
    await this.#live.during("close of a socket", () => {
      WebSocket.closed(found.socket, code, reason);
    });
  }

  /** See (2). */
  #follow(socket: WebSocket, given: Promise<unknown>): void {
    const live = this.#live;
    const ended = given.then(
      () => WebSocket.settled(socket),
      (error: unknown) => {
        live.log.error({ msg: `onWebSocket failed: ${messageOf(error)}`, err: error });
        const reason = isRivetError(error)
          ? `${error.group}.${error.code}`
          : "rivetkit.internal_error";
        socket.close(1011, reason);
      },
    );
    live.bag.context.keepAwake(ended);
  }
}

function json(args: Uint8Array): unknown {
  return JSON.parse(Buffer.from(args.buffer, args.byteOffset, args.byteLength).toString("utf8"));
}
