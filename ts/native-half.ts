/**
 * What this layer uses of the native half. Everything that crosses is named here and nowhere else.
 */

import {
  type ActorBag,
  type ActorContext,
  type ActorRow,
  type BackupReport,
  type CallerKind,
  type CallScope,
  CancellationToken,
  type CrashPoint,
  clockNow,
  clockSleep,
  clockwork,
  dispatch,
  EitherSignal,
  type Exchange,
  type Hold,
  type HostHandle,
  isBinding,
  type JsActorStateTransaction,
  type JsNativeDatabase,
  type JsSqliteTransaction,
  type Kv,
  type ListedActor,
  messages,
  NapiActorFactory,
  OpenStatements,
  onAbort,
  packNamed,
  packPositional,
  type Queue,
  type Received,
  type Schedule,
  type SleepStop,
  type SqlBinding,
  type SqlBindings,
  type SqlCell,
  type SqlResult,
  type Stop,
  type Target,
  type Trial,
  transactions,
  unbridged,
} from "./native";
import { once } from "./native/once";

export type {
  ActorBag as Bag,
  ActorContext as NativeContext,
  ActorRow as Row,
  BackupReport,
  CallerKind,
  CallScope,
  CrashPoint,
  Exchange,
  Hold,
  HostHandle as Host,
  JsActorStateTransaction as NativeStateTransaction,
  JsNativeDatabase as NativeDatabase,
  JsSqliteTransaction as NativeTransaction,
  Kv as NativeKv,
  ListedActor,
  Queue as NativeQueue,
  Received,
  Schedule as NativeSchedule,
  SleepStop,
  SqlBinding,
  SqlBindings,
  SqlCell,
  SqlResult,
  Stop,
  Target,
  Trial,
};
export {
  CancellationToken,
  clockNow,
  clockSleep,
  clockwork,
  dispatch,
  EitherSignal,
  isBinding,
  messages,
  NapiActorFactory,
  OpenStatements,
  onAbort,
  once,
  packNamed,
  packPositional,
  transactions,
  unbridged,
};

/** Callers by their number at the boundary. */
export const callers = ["client", "actor", "local", "schedule"] as const;

/** The number of a caller. */
export function callerKind(caller: (typeof callers)[number]): CallerKind {
  return callers.indexOf(caller) as CallerKind;
}
