/** An actor's keys and values, as types. */

/** A key: bytes, or text as UTF-8. Up to 2,048 bytes when it is written. */
export type KvKey = string | Uint8Array;

/** A value to store: bytes, or text as UTF-8. Up to 131,072 bytes. */
export type KvValue = string | Uint8Array | ArrayBuffer;

/** What values are given as, by the name of the type. */
export interface KvTypes {
  /** As text, read as UTF-8. */
  text: string;
  /** As bytes. */
  binary: Uint8Array;
  /** As bytes. */
  arrayBuffer: ArrayBuffer;
}

/** What keys are given as, by the name of the type. */
export interface KvKeyTypes {
  /** As text, read as UTF-8. */
  text: string;
  /** As bytes. */
  binary: Uint8Array;
}

/** Options of a list of keys. */
export interface KvListOptions<
  T extends keyof KvTypes = "text",
  K extends keyof KvKeyTypes = "text",
> {
  /** What values are given as. Default `"text"`. */
  type?: T | undefined;
  /** What keys are given as. Default `"text"`. */
  keyType?: K | undefined;
  /** From the last key to the first. Default false. */
  reverse?: boolean | undefined;
  /** How many at most, a whole number from 0, counted from where the list begins. Default all. */
  limit?: number | undefined;
}

/**
 * Keys and values, ordered by the bytes of the keys. Whatever one turn changes, here and in the state,
 * is stored together; what a write returns resolves when that is durable. Reads see every earlier write.
 *
 * All methods reject with `storage.*` when the disk fails, and with `actor.stopping` after the end.
 */
export interface ActorKv {
  /** The value of a key; null when there is none. */
  get<T extends keyof KvTypes = "text">(
    key: KvKey,
    options?: { type?: T | undefined },
  ): Promise<KvTypes[T] | null>;
  /**
   * Sets a value.
   *
   * @throws rejects with `kv.key_too_large`, `kv.value_too_large`
   */
  put(key: KvKey, value: KvValue, options?: { type?: keyof KvTypes | undefined }): Promise<void>;
  /** Deletes a key, if it is there. */
  delete(key: KvKey): Promise<void>;
  /** The values of keys, in their order; null for those that are not there. */
  batchGet(keys: readonly Uint8Array[]): Promise<(Uint8Array | null)[]>;
  /**
   * Sets all values or none; of a key that comes twice the last counts.
   *
   * @throws rejects with `kv.key_too_large`, `kv.value_too_large`
   */
  batchPut(entries: readonly (readonly [key: Uint8Array, value: Uint8Array])[]): Promise<void>;
  /** Deletes keys. */
  batchDelete(keys: readonly Uint8Array[]): Promise<void>;
  /** Deletes the keys from `start` on and before `end`. */
  deleteRange(start: KvKey, end: KvKey): Promise<void>;
  /** The keys that begin with `prefix` and their values. */
  listPrefix<T extends keyof KvTypes = "text", K extends keyof KvKeyTypes = "text">(
    prefix: KvKey,
    options?: KvListOptions<T, K>,
  ): Promise<[KvKeyTypes[K], KvTypes[T]][]>;
  /** The keys from `start` on and before `end`, and their values. */
  listRange<T extends keyof KvTypes = "text", K extends keyof KvKeyTypes = "text">(
    start: KvKey,
    end: KvKey,
    options?: KvListOptions<T, K>,
  ): Promise<[KvKeyTypes[K], KvTypes[T]][]>;
  /** The same as {@link listPrefix}. */
  list<T extends keyof KvTypes = "text", K extends keyof KvKeyTypes = "text">(
    prefix: KvKey,
    options?: KvListOptions<T, K>,
  ): Promise<[KvKeyTypes[K], KvTypes[T]][]>;
}
