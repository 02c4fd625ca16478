/** An actor's events, as types. */

import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { SubscribeContext } from "./connections";

/** The key of what exists for the compiler only. */
declare const eventTypes: unique symbol;

/** What is known of an event's types. */
interface EventTypes {
  /** What is sent. */
  readonly sent: unknown;
  /** What is received: what the schema made of it. */
  readonly received: unknown;
}

/** What is given to `event()`. */
export interface EventOptions<Sent = unknown, T = unknown> {
  /** Checks the payload when it is sent, and may change it: one argument as itself, several as a list. */
  schema?: StandardSchemaV1<Sent, T> | undefined;
  /** Whether the client of `c.conn` may hear the event: `false` refuses with `auth.forbidden`. */
  canSubscribe?: ((c: SubscribeContext) => boolean | Promise<boolean>) | undefined;
}

/** An event that was declared with `event()`. */
export interface EventSchema<T extends EventTypes = EventTypes> extends EventOptions {
  /** For the compiler only. */
  readonly [eventTypes]?: T;
}

/** An event of an actor: what `event()` returns, its options, or the schema of its payload. */
export type EventConfig = EventSchema | EventOptions | StandardSchemaV1;

/** What may be given as `events` of an actor. */
export type EventConfigs<E> = {
  readonly [K in keyof E]: E[K] extends object ? EventConfig : never;
};

/** The types of an event as it was declared. */
type TypesOfEvent<E> = E extends StandardSchemaV1
  ? { sent: StandardSchemaV1.InferInput<E>; received: StandardSchemaV1.InferOutput<E> }
  : E extends { readonly [eventTypes]?: infer T }
    ? [Extract<T, EventTypes>] extends [never]
      ? TypesOfOptions<E>
      : unknown extends T
        ? TypesOfOptions<E>
        : Extract<T, EventTypes>
    : TypesOfOptions<E>;

interface TypesOfOptions<E> extends EventTypes {
  sent: E extends { schema: infer S extends StandardSchemaV1 }
    ? StandardSchemaV1.InferInput<S>
    : unknown;
  received: E extends { schema: infer S extends StandardSchemaV1 }
    ? StandardSchemaV1.InferOutput<S>
    : unknown;
}

/** The arguments of an event: a tuple's members, anything else as the only one, nothing for `undefined`. */
export type InferEventArgs<T> = unknown extends T
  ? unknown[]
  : // biome-ignore lint/suspicious/noConfusingVoidType: event<void>() is an event without a payload
    [T] extends [void]
    ? []
    : [T] extends [readonly unknown[]]
      ? number extends T["length"]
        ? [payload: T]
        : T
      : [payload: T];

/** The arguments with which an event is sent. */
export type SentEventArgs<E> = InferEventArgs<TypesOfEvent<E>["sent"]>;

/** The arguments with which an event is received. */
export type ReceivedEventArgs<E> = InferEventArgs<TypesOfEvent<E>["received"]>;

/** What may be given as `events`, by name. */
export type EventSchemaConfig = Readonly<Record<string, EventConfig>>;
