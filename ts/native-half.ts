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
  type Kv,
  type ListedActor,
  NapiActorFactory,
  type Schedule,
  type SleepStop,
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
  Kv as NativeKv,
  ListedActor,
  Schedule as NativeSchedule,
  SleepStop,
  Target,
};
export { clockNow, clockSleep, clockwork, dispatch, NapiActorFactory, once, unbridged };

/** Callers by their number at the boundary. */
export const callers = ["client", "actor", "local", "schedule"] as const;

/** The number of a caller. */
export function callerKind(caller: (typeof callers)[number]): CallerKind {
  return callers.indexOf(caller) as CallerKind;
}
