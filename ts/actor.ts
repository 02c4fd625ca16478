/** `actor()`: describes a type of actor. */

import { defineActor } from "./definition";
import type { ActorConfig, ActorDefinition } from "./types";

/**
 * Describes a type of actor, to be given to `setup()`.
 *
 * @throws TypeError naming the key, for what is unknown, not available or contradictory.
 */
export function actor<
  S = undefined,
  V = undefined,
  I = undefined,
  In = I,
  A = Record<never, never>,
  IA = Record<never, never>,
  D = unknown,
  N extends string = never,
  Q = Record<never, never>,
  DB = undefined,
  CP = undefined,
  CS = undefined,
  E = Record<never, never>,
  SP = CP,
>(
  config: ActorConfig<S, V, I, In, A, IA, D, N, Q, DB, CP, CS, E, SP>,
): ActorDefinition<{
  state: S;
  vars: V;
  input: In;
  deps: D;
  db: DB;
  actions: A;
  internalActions: IA;
  queues: Q;
  connParams: CP;
  sentParams: SP;
  connState: CS;
  events: E;
}> {
  return defineActor(config);
}
