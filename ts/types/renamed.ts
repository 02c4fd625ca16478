/**
 * Types by the names under which RivetKit exports them, where ours differ, so that a file which imports
 * them moves by changing the import.
 */

import type { RivetError } from "../errors";
import type { SetupOptions } from "../registry/options";
import type { Client } from "./client";
import type { ActorOptions } from "./config";
import type { AnyActorDefinition, AnyRegistry, Definitions } from "./definition";
import type { QueueConfig, QueueMessage } from "./queue";

/** The same as {@link ActorOptions}. */
export type ActorOptionsInput = ActorOptions;

/** A client of any registry. */
export type AnyClient = Client<AnyRegistry>;

/** The same as {@link AnyActorDefinition}. */
export type BaseActorDefinition = AnyActorDefinition;

/** The same as {@link QueueMessage}. */
export type QueueMessageOf<Name extends string, Body> = QueueMessage<Name, Body>;

/** What may be given as `queues`, by name. */
export type QueueSchemaConfig = Readonly<Record<string, QueueConfig>>;

/** The same as {@link SetupOptions}. */
export type RegistryConfig<U extends Definitions = Definitions> = SetupOptions<U>;

/** The same as {@link SetupOptions}. */
export type RegistryConfigInput<U extends Definitions = Definitions> = SetupOptions<U>;

/** What every error of a group and a code has, whichever class made it. */
export type RivetErrorLike = Pick<
  RivetError,
  "__type" | "group" | "code" | "message" | "public" | "statusCode" | "metadata" | "rayId" | "actor"
>;
