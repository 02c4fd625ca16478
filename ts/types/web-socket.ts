/** Raw sockets, as types. */

/** Something that happened to a socket. */
export interface RivetEvent {
  readonly type: string;
  readonly target: UniversalWebSocket;
  readonly currentTarget: UniversalWebSocket;
}

/** A message. */
export interface RivetMessageEvent extends RivetEvent {
  /** Text, or bytes. */
  readonly data: string | ArrayBuffer;
  /** Its number among those of the socket: 1 to 65,535, and after that 0. */
  readonly rivetMessageIndex: number;
}

/** The end. */
export interface RivetCloseEvent extends RivetEvent {
  readonly code: number;
  readonly reason: string;
  /** Whether the code is 1000. */
  readonly wasClean: boolean;
}

/** The events of a socket, by name. */
export interface SocketEvents {
  open: RivetEvent;
  message: RivetMessageEvent;
  close: RivetCloseEvent;
  error: RivetEvent;
}

/** Hears an event. A promise keeps the actor awake until it settles. */
export type SocketListener<E> = (event: E) => unknown;

/** A socket of a client that speaks for itself. It looks like a standard WebSocket that is open. */
export interface UniversalWebSocket {
  readonly CONNECTING: 0;
  readonly OPEN: 1;
  readonly CLOSING: 2;
  readonly CLOSED: 3;
  readonly readyState: number;
  readonly url: string;
  readonly protocol: string;
  readonly extensions: string;
  readonly bufferedAmount: number;
  binaryType: "arraybuffer";
  onopen: SocketListener<RivetEvent> | null;
  onmessage: SocketListener<RivetMessageEvent> | null;
  onclose: SocketListener<RivetCloseEvent> | null;
  onerror: SocketListener<RivetEvent> | null;
  /** Sends a message; it leaves when everything that was changed before is durable. */
  send(data: string | ArrayBuffer | ArrayBufferView): void;
  /** Closes the socket behind everything that was sent. */
  close(code?: number, reason?: string): void;
  addEventListener<K extends keyof SocketEvents>(
    kind: K,
    listener: SocketListener<SocketEvents[K]>,
    options?: { once?: boolean },
  ): void;
  removeEventListener<K extends keyof SocketEvents>(
    kind: K,
    listener: SocketListener<SocketEvents[K]>,
  ): void;
}
