/** WebSockets, as far as the client needs them; its types need no library of the browser's. */

import { clientError } from "./errors";
import type { Settings } from "./options";

/** What any WebSocket offers. */
export interface SocketLike {
  binaryType: string;
  readonly readyState: number;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: "open" | "error", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(
    type: "close",
    listener: (event: { code: number; reason: string }) => void,
  ): void;
}

/** A `WebSocket` class: that of the platform, or of the package `ws`. */
export type WebSocketClass = new (url: string, protocols: string[]) => SocketLike;

/** The platform's `WebSocket`, where its types are known. */
export type PlatformWebSocket = typeof globalThis extends { WebSocket: { prototype: infer T } }
  ? T
  : SocketLike;

/** Names of what a client offers when it opens a socket; the values stand behind a dot. */
export interface Offer {
  readonly encoding: string;
  readonly params: unknown;
}

/**
 * Opens a socket at `path` below the base.
 *
 * @throws `client.web_socket_missing`
 */
export function openSocket(settings: Settings, path: string, offer: Offer): SocketLike {
  if (settings.webSocket === undefined) {
    throw clientError(
      "web_socket_missing",
      "there is no global WebSocket: pass one as createClient({ webSocket }), such as that of the package ws",
    );
  }
  const url = settings.base.replace(/^http/, "ws") + path;
  const socket = new settings.webSocket(url, offered(settings, offer));
  socket.binaryType = "arraybuffer";
  return socket;
}

/** Not in the URL, where secrets end up in logs. */
function offered(settings: Settings, { encoding, params }: Offer): string[] {
  const list = ["rivet", `rivet_encoding.${encoding}`];
  if (params !== undefined) list.push(`rivet_conn_params.${asToken(JSON.stringify(params))}`);
  if (settings.token !== undefined) list.push(`rivet_token.${settings.token}`);
  return list;
}

/** Parentheses are the only characters that are left as they are and that no token may have. */
function asToken(text: string): string {
  return encodeURIComponent(text).replaceAll("(", "%28").replaceAll(")", "%29");
}
