/**
 * `ws`: a raw socket, as authors have it in `onWebSocket`. It looks like a standard WebSocket that is open.
 *
 * 1. Messages come in their order, and not before somebody listens for them, as long as `onWebSocket` has
 *    not ended; after that what nobody listens for is dropped.
 * 2. What is sent waits for the changes made before it, and keeps its order.
 * 3. It is closed once: by the client, by `close()`, or with its connection.
 * 4. What a listener throws, or its promise rejects with, is logged. A promise keeps the actor awake.
 */

import type { Live } from "../actors/live";
import { describe } from "../definition/keys";
import { invalidArgument, messageOf } from "../errors";
import { dispatch } from "../native-half";

type Listener = ((event: object) => unknown) | { handleEvent(event: object): unknown };

/** How much may wait for a listener, in characters or bytes. */
const MAX_EARLY = 1024 * 1024;

/** What a message counts beside what it has. */
const MESSAGE = 64;

const STATES = { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 } as const;

const kinds = ["open", "message", "close", "error"] as const;
type Kind = (typeof kinds)[number];

class SocketEvent {
  readonly type: Kind;
  readonly target: WebSocket;
  readonly currentTarget: WebSocket;

  constructor(type: Kind, target: WebSocket, fields: object) {
    this.type = type;
    this.target = target;
    this.currentTarget = target;
    Object.assign(this, fields);
  }
}

export class WebSocket {
  static readonly CONNECTING = STATES.CONNECTING;
  static readonly OPEN = STATES.OPEN;
  static readonly CLOSING = STATES.CLOSING;
  static readonly CLOSED = STATES.CLOSED;
  readonly CONNECTING = STATES.CONNECTING;
  readonly OPEN = STATES.OPEN;
  readonly CLOSING = STATES.CLOSING;
  readonly CLOSED = STATES.CLOSED;
  readonly url: string;
  readonly protocol = "rivet";
  readonly extensions = "";
  readonly bufferedAmount = 0;
  readonly #live: Live;
  readonly #number: number;
  readonly #listeners = new Map<Kind, Map<Listener, { readonly once: boolean }>>();
  readonly #handlers = new Map<Kind, Listener>();
  #readyState: number = STATES.OPEN;
  /** Messages that wait for a listener; undefined once none does any more (1). */
  #early: object[] | undefined = [];
  #earlyLength = 0;

  constructor(live: Live, number: number, url: string) {
    this.#live = live;
    this.#number = number;
    this.url = url;
  }

  get readyState(): number {
    return this.#readyState;
  }

  get binaryType(): "arraybuffer" {
    return "arraybuffer";
  }

  set binaryType(type: "arraybuffer") {
    if (type === "arraybuffer") return;
    throw invalidArgument(`binaryType is "arraybuffer", and cannot be ${describe(type)}`);
  }

  get onopen(): Listener | null {
    return this.#handlers.get("open") ?? null;
  }

  set onopen(listener: Listener | null) {
    this.#handle("open", listener);
  }

  get onmessage(): Listener | null {
    return this.#handlers.get("message") ?? null;
  }

  set onmessage(listener: Listener | null) {
    this.#handle("message", listener);
  }

  get onclose(): Listener | null {
    return this.#handlers.get("close") ?? null;
  }

  set onclose(listener: Listener | null) {
    this.#handle("close", listener);
  }

  get onerror(): Listener | null {
    return this.#handlers.get("error") ?? null;
  }

  set onerror(listener: Listener | null) {
    this.#handle("error", listener);
  }

  addEventListener(
    kind: string,
    listener: Listener | null,
    options?: boolean | { once?: boolean },
  ): void {
    if (listener === null || !kinds.includes(kind as Kind)) return;
    const once = typeof options === "object" && options?.once === true;
    const listeners = this.#listeners.get(kind as Kind) ?? new Map();
    this.#listeners.set(kind as Kind, listeners);
    if (!listeners.has(listener)) listeners.set(listener, { once });
    this.#flush();
  }

  removeEventListener(kind: string, listener: Listener | null): void {
    if (listener !== null) this.#listeners.get(kind as Kind)?.delete(listener);
  }

  dispatchEvent(event: { readonly type: string }): boolean {
    this.#tell(event.type as Kind, event);
    return true;
  }

  send(data: unknown): void {
    if (this.#readyState !== STATES.OPEN) return;
    const [bytes, isText] = bytesOf(data);
    this.#live.desk?.settle();
    dispatch.sendOver(this.#live.bag, this.#number, bytes, isText);
  }

  close(code = 1000, reason = ""): void {
    if (!isCode(code))
      throw invalidArgument(`code of close() is ${describe(code)}, not one to send`);
    if (this.#readyState !== STATES.OPEN) return;
    this.#readyState = STATES.CLOSING;
    this.#live.desk?.settle();
    dispatch.closeOver(this.#live.bag, this.#number, code, String(reason));
  }

  /** A message has come. Not for authors. */
  static received(socket: WebSocket, data: string | ArrayBuffer, index: number): void {
    socket.#received(data, index);
  }

  /** It is closed. Not for authors. */
  static closed(socket: WebSocket, code: number, reason: string): void {
    socket.#closed(code, reason);
  }

  /** `onWebSocket` has ended (1). Not for authors. */
  static settled(socket: WebSocket): void {
    socket.#flush();
    socket.#early = undefined;
  }

  #received(data: string | ArrayBuffer, index: number): void {
    if (this.#readyState !== STATES.OPEN) return;
    const message = new SocketEvent("message", this, { data, rivetMessageIndex: index });
    if (this.#early === undefined || this.#hasListener("message")) {
      this.#tell("message", message);
      return;
    }
    this.#early.push(message);
    this.#earlyLength += MESSAGE + (typeof data === "string" ? data.length : data.byteLength);
    if (this.#earlyLength > MAX_EARLY) this.close(1011, "actor.overloaded");
  }

  #closed(code: number, reason: string): void {
    if (this.#readyState === STATES.CLOSED) return;
    this.#readyState = STATES.CLOSED;
    this.#early = undefined;
    this.#tell("close", new SocketEvent("close", this, { code, reason, wasClean: code === 1000 }));
  }

  #handle(kind: Kind, listener: Listener | null): void {
    if (listener === null) this.#handlers.delete(kind);
    else this.#handlers.set(kind, listener);
    this.#flush();
  }

  #hasListener(kind: Kind): boolean {
    return this.#handlers.has(kind) || (this.#listeners.get(kind)?.size ?? 0) > 0;
  }

  #flush(): void {
    const early = this.#early;
    if (early === undefined || early.length === 0 || !this.#hasListener("message")) return;
    this.#early = [];
    this.#earlyLength = 0;
    for (const message of early) this.#tell("message", message);
  }

  #tell(kind: Kind, event: object): void {
    const handler = this.#handlers.get(kind);
    if (handler !== undefined) this.#call(handler, event);
    const listeners = this.#listeners.get(kind);
    for (const [listener, { once }] of [...(listeners ?? [])]) {
      if (listeners?.has(listener) !== true) continue;
      if (once) listeners.delete(listener);
      this.#call(listener, event);
    }
  }

  /** See (4). */
  #call(listener: Listener, event: object): void {
    const failed = (error: unknown): void => {
      this.#live.log.error({
        msg: `a listener of a socket failed: ${messageOf(error)}`,
        err: error,
      });
    };
    try {
      const given =
        typeof listener === "function" ? listener.call(this, event) : listener.handleEvent(event);
      if (given instanceof Promise) {
        this.#live.bag.context.keepAwake(given.then(undefined, failed));
      }
    } catch (error) {
      failed(error);
    }
  }
}

function bytesOf(data: unknown): [bytes: Uint8Array, isText: boolean] {
  if (typeof data === "string") return [Buffer.from(data), true];
  if (ArrayBuffer.isView(data)) {
    return [new Uint8Array(data.buffer, data.byteOffset, data.byteLength), false];
  }
  if (data instanceof ArrayBuffer) return [new Uint8Array(data), false];
  throw invalidArgument(`send() of a socket takes text or bytes, not ${describe(data)}`);
}

/** Whether a code may stand in a close frame. */
function isCode(code: unknown): boolean {
  if (!Number.isInteger(code)) return false;
  const number = code as number;
  const isReserved = (number >= 1004 && number <= 1006) || number === 1015;
  return number >= 1000 && number <= 4999 && !isReserved;
}
