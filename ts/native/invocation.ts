/**
 * The handle that an invocation gets. All handles on a generation are equal, but for what they know
 * of the invocation that they were made for.
 *
 * 1. A call or a request has a handle to itself while it lasts, from when it is first looked at: signals that were
 *    asked for through it need not be kept any longer then. Making one costs more than all else that is made for
 *    a call, so the calls of a connection have theirs one after the other.
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

/** The handles that no call has, of connections: most have one call at a time. */
const spare = new WeakMap<ConnHandle, ActorContext>();

/** A handle of its own for one call, over a connection or not, until {@link handBack}. */
export function invokedBy(bag: ActorBag, conn: ConnHandle | null): ActorContext {
  if (conn === null) return own(bag, undefined);
  const found = spare.get(conn);
  if (found === undefined) return own(bag, rayOfConnection(conn));
  spare.delete(conn);
  return found;
}

/** The call of a handle is over: the next one over the connection has it, unless signals were asked for by it. */
export function handBack(bag: ActorBag, conn: ConnHandle | null, ctx: ActorContext): void {
  if (!bag.letGo(ctx) && conn !== null && ctx !== bag.context) spare.set(conn, ctx);
}

/** A handle of its own for one request with this ray id: {@link ActorBag.letGo} ends it. */
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
