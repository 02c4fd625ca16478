/**
 * greenroom: stateful actors inside a Node.js process.
 *
 * `actor()` describes a type of actor, `setup()` brings actors and storage together, and
 * `registry.client()` calls them.
 */

export { actor } from "./actor";
export { event } from "./connections/define";
export {
  ActorError,
  type ActorSpecifier,
  RivetError,
  type RivetErrorOptions,
  UserError,
  type UserErrorOptions,
} from "./errors";
export type { ApplicationHandler } from "./gateway/applications";
export type { DoorOptions } from "./gateway/door";
export type { CloseOptions, Listener } from "./gateway/listeners";
export type { ListenOptions } from "./gateway/options";
export type { BaseLogger, LoggingOptions, LogLevel, LogLine, LogSink } from "./log";
export type { BackupReport } from "./native-half";
export { queue } from "./queue/define";
export {
  type ActorList,
  type ImportOptions,
  type ListOptions,
  Registry,
  type ShutdownOptions,
  type ShutdownReport,
  setup,
} from "./registry";
export type { ActorInfo, ExportOptions, ManagedActor } from "./registry/actor";
export type { SetupOptions } from "./registry/options";
export type * from "./types";
