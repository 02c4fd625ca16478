/**
 * `greenroom/native`: the native classes of the contract, and the dispatch on which
 * the author's layer stands. Opened once per environment, when it is first loaded.
 */
// Before all that needs the addon, because it explains why there is none.
import "./load.js";

export type { JsActorConfig, JsSaveOptions } from "../../index.js";
export {
  ActorContext,
  ConnHandle,
  decodeInspectorRequest,
  encodeInspectorResponse,
  JsActorStateTransaction,
  JsNativeDatabase,
  JsSqliteTransaction,
  Kv,
  Queue,
  QueueMessage,
  Schedule,
  WebSocket,
} from "../../index.js";
export type { ActionPayload } from "./actions.js";
export { ActorBag, type ActorIdentity, type StopOutcome } from "./bags.js";
export { HttpRequestBodyStream, HttpResponseBodyStream } from "./bodies.js";
export { clockNow, clockSleep, type SleepStop } from "./clock.js";
export * as clockwork from "./clockwork.js";
export * as crossing from "./crossing.js";
export type { StateDeltaPayload } from "./delta.js";
export type { Dispatch, LogLevel, LogLine } from "./dispatch.js";
export { dispatch } from "./environment.js";
export {
  BRIDGE_PREFIX,
  type ErrorActor,
  type ErrorRecord,
  fromRecord,
  RivetError,
  type RivetErrorOptions,
  recordOf,
  unbridged,
} from "./errors.js";
export type { Exchange } from "./exchange.js";
export { type Callback, type Callbacks, NapiActorFactory } from "./factory.js";
export type { CallerKind, HookPayload } from "./hooks.js";
export type {
  ActorReport,
  ActorRow,
  BackupReport,
  EnsureMode,
  Hold,
  HostHandle,
  ListedActor,
  Listening,
  ListOptions,
  OpenHostOptions,
  ShutdownReport,
  Target,
} from "./host.js";
export type { CallScope } from "./inplace.js";
export { INSPECT, Wanted } from "./inspection.js";
export type { KvEntry, KvListOptions } from "./kv.js";
export { EitherSignal, onAbort, type Stop } from "./listen.js";
export { bagOf } from "./owner.js";
export type { QueueReceiveOptions, QueueWaitOptions, Received } from "./queue.js";
export * as messages from "./queue.js";
export { CoreRegistry } from "./registry.js";
export type {
  DeadRow,
  EventRow,
  FaultRow,
  FireInfo,
  HistoryRow,
  JobRow,
} from "./schedule.js";
export type { SessionHandle, SessionListener } from "./sessions.js";
export type { JsBindParam, JsSqlStatement } from "./sql.js";
export {
  isBinding,
  packNamed,
  packPositional,
  type SqlBinding,
  type SqlBindings,
  type SqlCell,
  type SqlResult,
} from "./sql-values.js";
export { OpenStatements } from "./statements.js";
export {
  type InvocationTraceContext,
  OutboundCall,
  type SpanContext,
  setTelemetryLogSink,
  shutdownTelemetry,
  type TelemetryLogSink,
  telemetryLogSink,
  WorkflowSpan,
  WorkflowStepSpan,
} from "./telemetry.js";
export { CancellationToken } from "./token.js";
export * as transactions from "./transaction.js";
export type { CrashPoint, Trial } from "./trial.js";
