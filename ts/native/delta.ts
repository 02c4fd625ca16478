/** What is to be stored of an actor: its state, and what changed of its connections. */
import type { JsStateDelta } from "../../index.js";

/** The same as the contract's callers say it. */
export interface StateDeltaPayload {
  /** The encoded state; absent when it is not to be stored. */
  readonly state?: Uint8Array | null | undefined;
  /** The encoded states of connections that outlive a sleep of the actor. */
  readonly connHibernation?: readonly { readonly connId: string; readonly bytes: Uint8Array }[];
  /** The ids of those that are stored no more. */
  readonly connHibernationRemoved?: readonly string[];
}

/** What an author's function may give back: bytes, or nothing. */
export function bytesOf(result: unknown): Uint8Array | undefined {
  if (result === undefined || result === null) return undefined;
  if (result instanceof Uint8Array) return result;
  throw new TypeError(`expected encoded bytes or nothing, not ${typeof result}`);
}

/** Reads what was handed over. */
export function deltaOf(given: unknown): JsStateDelta {
  if (given === undefined || given === null) return {};
  if (typeof given !== "object") {
    throw new TypeError(`expected a delta of state, not ${typeof given}`);
  }
  const { state, connHibernation, connHibernationRemoved } = given as StateDeltaPayload;
  const delta: JsStateDelta = {};
  const encoded = bytesOf(state);
  if (encoded !== undefined) delta.state = encoded;
  if (connHibernation !== undefined && connHibernation.length > 0) {
    delta.ids = connHibernation.map(({ connId }) => String(connId));
    delta.states = connHibernation.map(({ bytes }) => bytesOf(bytes) ?? NOTHING);
  }
  if (connHibernationRemoved !== undefined && connHibernationRemoved.length > 0) {
    delta.removed = connHibernationRemoved.map(String);
  }
  return delta;
}

const NOTHING = new Uint8Array(0);

/** Whether a delta has something of connections. */
export function hasConnections(delta: JsStateDelta): boolean {
  return delta.ids !== undefined || delta.removed !== undefined;
}
