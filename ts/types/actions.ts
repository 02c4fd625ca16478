/** What an author's tree of actions means for whoever calls it. */

import type { StandardSchemaV1 } from "@standard-schema/spec";

/**
 * A tree of actions: functions that get the context first, and groups of them. They may return
 * anything: against `void` the compiler does not look at what they return, so that an action can
 * call a helper whose parameter is of the type of the actor itself.
 */
export interface ActionTree<C> {
  readonly [name: string]: ((c: C, ...args: never[]) => void) | ActionTree<C>;
}

/** Members of every handle: no action at the top of a tree may have such a name. */
export type ReservedActionName =
  | "action"
  | "connect"
  | "send"
  | "fetch"
  | "webSocket"
  | "resolve"
  | "getGatewayUrl"
  | "reload"
  | "then"
  | "toJSON";

/** Refuses the names of {@link ReservedActionName}, and tells the compiler why. */
export type WithoutReservedActions = {
  readonly [K in ReservedActionName]?: `every handle has a member ${K}: choose another name`;
};

/** The arguments that a caller passes: all but the context. */
export type ActionArgs<F> = F extends (...all: infer All) => unknown
  ? All extends [unknown?, ...infer Args]
    ? Args
    : never
  : never;

/** What a caller gets. */
export type ActionResult<F> = F extends (...all: never[]) => infer R ? Promise<Awaited<R>> : never;

/** An action or a group as a member of a handle. */
export type Calls<A> = {
  readonly [K in keyof A]: A[K] extends (...all: never[]) => unknown
    ? (...args: ActionArgs<A[K]>) => ActionResult<A[K]>
    : Calls<A[K]>;
};

/** The names of all actions of a tree, groups joined by dots. */
export type ActionName<A> = {
  [K in keyof A & string]: A[K] extends (...all: never[]) => unknown
    ? K
    : `${K}.${ActionName<A[K]>}`;
}[keyof A & string];

/** The action of the given dotted name. */
export type ActionAt<A, N extends string> = N extends keyof A
  ? A[N]
  : N extends `${infer Head}.${infer Rest}`
    ? Head extends keyof A
      ? ActionAt<A[Head], Rest>
      : never
    : never;

/** Schemas for the arguments of actions, each of the list of them, as a tree or by dotted names. */
export type ActionInputSchemas<A> = {
  readonly [K in keyof A]?: A[K] extends (...all: never[]) => unknown
    ? StandardSchemaV1<unknown, ActionArgs<A[K]>>
    : ActionInputSchemas<A[K]>;
} & {
  readonly [N in Exclude<ActionName<A>, keyof A>]?: StandardSchemaV1<
    unknown,
    ActionArgs<ActionAt<A, N>>
  >;
};
