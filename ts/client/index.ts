/**
 * `greenroom/client`: calls actors over the network, from Node.js and from browsers. It needs no native
 * code.
 */

export {
  ActorError,
  type ActorSpecifier,
  RivetError,
  type RivetErrorOptions,
} from "../errors";
export type { ActorKey } from "../types/client";
export type { ActorConn, ActorConnStatus, ConnMembers, ParamsOptions } from "../types/connected";
export { createClient } from "./client";
export type { EncodingName } from "./encoding";
export type { ClientOptions } from "./options";
export type { PlatformWebSocket, SocketLike, WebSocketClass } from "./socket";
export type { Timers } from "./timers";
export type {
  RemoteAccessor,
  RemoteClient,
  RemoteClientRaw,
  RemoteHandle,
  RemoteMembers,
} from "./types";
