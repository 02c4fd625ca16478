/**
 * The handle that an invocation gets. All handles on a generation are equal, but for what they know
 * of the invocation that they were made for.
 *
 * 1. A handle of its own is made only where there is something to know, since it costs more than
 *    all else that is made for a call.
 */
import type { ActorContext, ConnHandle } from "../../index.js";
import * as native from "../../index.js";
import type { ActorBag } from "./bags.js";
import { belongsTo } from "./owner.js";

/** The same for every copy of this module, since all share the native classes. */
const RAY: unique symbol = Symbol.for("greenroom.ray");

/** The header with it, which a gateway adds where a client sends none. */
const RAY_ID = "x-rivet-ray-id";

interface Invoked {
  [RAY]?: string;
}

/** A handle on a generation for an invocation with this ray id. */
export function invoked(bag: ActorBag, rayId: string | undefined): ActorContext {
  if (rayId === undefined) return bag.context;
  const made = native.actorContext(bag.home.environment, bag.actor);
  // The generation is over: whatever is asked of its handle is answered without one of its own.
  if (made === null) return bag.context;
  return Object.defineProperty(belongsTo(made, bag), RAY, { value: rayId });
}

/** One handle for each connection, since all of its invocations belong to one ray. */
const ofConnections = new WeakMap<ConnHandle, ActorContext>();

/** A handle on a generation for what happens over a connection of it. */
export function invokedOver(bag: ActorBag, conn: ConnHandle): ActorContext {
  let made = ofConnections.get(conn);
  if (made === undefined) {
    made = invoked(bag, conn.requestHeader(RAY_ID) ?? undefined);
    ofConnections.set(conn, made);
  }
  return made;
}

/** The ray id of the invocation that a handle was made for. */
export function rayOf(context: ActorContext): string | undefined {
  return (context as Invoked)[RAY];
}

/** The ray id of a request. */
export function rayOfHead(headers: Readonly<Record<string, string>> | undefined) {
  return headers?.[RAY_ID];
}
