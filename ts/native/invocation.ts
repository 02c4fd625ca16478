/**
 * The handle that an invocation gets. All handles on a generation are equal, but for what they know
 * of the invocation that they were made for.
 *
 * 1. A call or a request has a handle of its own, made when it is first looked at, and let go of when it is over:
 *    signals that were asked for through it need not be kept any longer.
 * 2. What belongs to no single call has the handle of its connection, or of the generation.
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
  return rayId === undefined ? bag.context : own(bag, rayId);
}

/** The ray ids of connections, since all of their invocations belong to one ray. */
const rays = new WeakMap<ConnHandle, string | undefined>();

/** The ray id of what happens over a connection. */
function rayOfConnection(conn: ConnHandle): string | undefined {
  if (!rays.has(conn)) rays.set(conn, conn.requestHeader(RAY_ID) ?? undefined);
  return rays.get(conn);
}

/** One handle for each connection. */
const ofConnections = new WeakMap<ConnHandle, ActorContext>();

/** A handle on a generation for what happens to a connection of it. */
export function invokedOver(bag: ActorBag, conn: ConnHandle): ActorContext {
  let made = ofConnections.get(conn);
  if (made === undefined) {
    made = invoked(bag, rayOfConnection(conn));
    ofConnections.set(conn, made);
  }
  return made;
}

/** A handle of its own for one call, over a connection or not: {@link ActorBag.letGo} ends it. */
export function invokedBy(bag: ActorBag, conn: ConnHandle | null): ActorContext {
  return own(bag, conn === null ? undefined : rayOfConnection(conn));
}

/** The same for one request with this ray id. */
export function own(bag: ActorBag, rayId: string | undefined): ActorContext {
  const made = native.actorContext(bag.home.environment, bag.actor);
  // The generation is over: whatever is asked of its handle is answered without one of its own.
  if (made === null) return bag.context;
  belongsTo(made, bag);
  return rayId === undefined ? made : Object.defineProperty(made, RAY, { value: rayId });
}

/** The ray id of the invocation that a handle was made for. */
export function rayOf(context: ActorContext): string | undefined {
  return (context as Invoked)[RAY];
}

/** The ray id of a request. */
export function rayOfHead(headers: Readonly<Record<string, string>> | undefined) {
  return headers?.[RAY_ID];
}
