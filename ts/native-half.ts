/**
 * What this layer uses of the native half. Everything that crosses is named here and nowhere else.
 */

import {
  type ActorBag,
  type ActorContext,
  type ActorRow,
  type CallerKind,
  type CallScope,
  clockNow,
  clockSleep,
  clockwork,
  dispatch,
  type Hold,
  type HostHandle,
  isBinding,
  type JsNativeDatabase,
  type JsSqliteTransaction,
  type Kv,
  type ListedActor,
  NapiActorFactory,
  packNamed,
  packPositional,
  type SleepStop,
  type SqlBinding,
  type SqlCell,
  type SqlResult,
  type Target,
  unbridged,
} from "./native";
import { once } from "./native/once";

export type {
  ActorBag as Bag,
  ActorContext as NativeContext,
  ActorRow as Row,
  CallerKind,
  CallScope,
  Hold,
  HostHandle as Host,
  JsNativeDatabase as NativeDatabase,
  JsSqliteTransaction as NativeTransaction,
  Kv as NativeKv,
  ListedActor,
  SleepStop,
  SqlBinding,
  SqlCell,
  SqlResult,
  Target,
};
export {
  clockNow,
  clockSleep,
  clockwork,
  dispatch,
  isBinding,
  NapiActorFactory,
  once,
  packNamed,
  packPositional,
  unbridged,
};

/** Callers by their number at the boundary. */
export const callers = ["client", "actor", "local", "schedule"] as const;

/** The number of a caller. */
export function callerKind(caller: (typeof callers)[number]): CallerKind {
  return callers.indexOf(caller) as CallerKind;
}
