/** Actor definitions and registries, as types. */

/** What is known of an actor's types. */
export interface DefinitionTypes {
  /** The durable state. */
  readonly state: unknown;
  /** What clients pass when they connect. */
  readonly connParams: unknown;
  /** What a client passes, before a schema made anything of it. */
  readonly sentParams: unknown;
  /** What is kept for each connection. */
  readonly connState: unknown;
  /** The events, by name. */
  readonly events: unknown;
  /** What lives as long as a generation. */
  readonly vars: unknown;
  /** What a creator passes. */
  readonly input: unknown;
  /** The tree of actions. */
  readonly actions: unknown;
  /** What `createVars` needs of `setup()`. */
  readonly deps: unknown;
  /** What `c.db` is. */
  readonly db: unknown;
  /** The queues, by name. */
  readonly queues: unknown;
  /** The tree of actions for schedules and the actor itself. */
  readonly internalActions: unknown;
}

/** The key of what exists for the compiler only. */
export declare const types: unique symbol;

/** What `actor()` returns. */
export interface ActorDefinition<T extends DefinitionTypes = DefinitionTypes> {
  /** For the compiler only. */
  readonly [types]?: T;
  /** What was given to `actor()`. */
  readonly config: object;
}

/** A definition of any types. */
export type AnyActorDefinition = ActorDefinition;

/** The types of a definition. */
export type TypesOf<D extends AnyActorDefinition> = NonNullable<D[typeof types]>;

/** The actions of a definition, public and internal: what its schedules may name. */
export type AllActionsOf<D extends AnyActorDefinition> = TypesOf<D>["actions"] &
  TypesOf<D>["internalActions"];

/** The definitions of a registry, by name. */
export type Definitions = Readonly<Record<string, AnyActorDefinition>>;

/** A registry of any actors. */
export interface AnyRegistry {
  /** For the compiler only. */
  readonly [types]?: Definitions;
}

/** The definitions of a registry. */
export type DefinitionsOf<R extends AnyRegistry> = NonNullable<R[typeof types]>;

/** Members of every client: no actor may have such a name. */
export type ReservedActorName =
  | "get"
  | "getOrCreate"
  | "getForId"
  | "create"
  | "dispose"
  | "then"
  | "toJSON";

/** Refuses the names of {@link ReservedActorName}, and tells the compiler why. */
export type WithoutReservedActors = {
  readonly [K in ReservedActorName]?: `every client has a member ${K}: choose another name`;
};
