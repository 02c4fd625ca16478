/**
 * What the contract's `Kv` has beyond Rust: promises.
 *
 * 1. What a call writes is committed at the end of the turn in which it was made,
 *    together with everything else that the turn changed.
 * 2. Bytes that are handed in may be changed afterwards; those that come out are the
 *    receiver's own.
 */
import { Kv, kvDelete, kvDeleteRange, kvGet, kvList, kvPut } from "../../index.js";
import { invalidArgument } from "./errors.js";
import { bagOf, wrote } from "./owner.js";

/** A key and its value. */
export interface KvEntry {
  readonly key: Buffer;
  readonly value: Buffer;
}

/** How keys are listed. */
export interface KvListOptions {
  /** From the last key to the first. Default false. */
  readonly reverse?: boolean | undefined;
  /** How many at most, a whole number from 0. Default all. */
  readonly limit?: number | undefined;
}

declare module "../../index.js" {
  interface Kv {
    /** The value of a key; null when there is none. */
    get(key: Uint8Array): Promise<Buffer | null>;
    /** Sets a value. Resolves when that is durable. */
    put(key: Uint8Array, value: Uint8Array): Promise<void>;
    /** Deletes a key, if it is there. Resolves when that is durable. */
    delete(key: Uint8Array): Promise<void>;
    /** Deletes the keys from `start` on and before `end`. */
    deleteRange(start: Uint8Array, end: Uint8Array): Promise<void>;
    /** The keys that begin with `prefix`, in the order of their bytes. */
    listPrefix(prefix: Uint8Array, options?: KvListOptions | null): Promise<KvEntry[]>;
    /** The keys from `start` on and before `end`, in the order of their bytes. */
    listRange(
      start: Uint8Array,
      end: Uint8Array,
      options?: KvListOptions | null,
    ): Promise<KvEntry[]>;
    /** The values of keys, in their order; null for those that are not there. */
    batchGet(keys: readonly Uint8Array[]): Promise<(Buffer | null)[]>;
    /** Sets all values or none; of a key that comes twice the last counts. */
    batchPut(entries: readonly { key: Uint8Array; value: Uint8Array }[]): Promise<void>;
    /** Deletes all keys. */
    batchDelete(keys: readonly Uint8Array[]): Promise<void>;
  }
}

const methods = {
  async get(this: Kv, key: Uint8Array): Promise<Buffer | null> {
    return (await this.batchGet([key]))[0] ?? null;
  },
  async put(this: Kv, key: Uint8Array, value: Uint8Array): Promise<void> {
    await write(this, (ticket) => kvPut(this, [key], [value], ticket));
  },
  async delete(this: Kv, key: Uint8Array): Promise<void> {
    await write(this, (ticket) => kvDelete(this, [key], ticket));
  },
  async deleteRange(this: Kv, start: Uint8Array, end: Uint8Array): Promise<void> {
    await write(this, (ticket) => kvDeleteRange(this, start, end, ticket));
  },
  listPrefix(this: Kv, prefix: Uint8Array, options?: KvListOptions | null): Promise<KvEntry[]> {
    return list(this, prefix, null, options);
  },
  listRange(
    this: Kv,
    start: Uint8Array,
    end: Uint8Array,
    options?: KvListOptions | null,
  ): Promise<KvEntry[]> {
    return list(this, start, end, options);
  },
  async batchGet(this: Kv, keys: readonly Uint8Array[]): Promise<(Buffer | null)[]> {
    return unpack(await read(this, (ticket) => kvGet(this, [...keys], ticket)));
  },
  async batchPut(
    this: Kv,
    entries: readonly { key: Uint8Array; value: Uint8Array }[],
  ): Promise<void> {
    const keys = entries.map((entry) => entry.key);
    const values = entries.map((entry) => entry.value);
    await write(this, (ticket) => kvPut(this, keys, values, ticket));
  },
  async batchDelete(this: Kv, keys: readonly Uint8Array[]): Promise<void> {
    await write(this, (ticket) => kvDelete(this, [...keys], ticket));
  },
};

// Once, also where this module is loaded twice in one environment.
if (!Object.hasOwn(Kv.prototype, "batchGet")) Object.assign(Kv.prototype, methods);

async function list(
  kv: Kv,
  start: Uint8Array,
  end: Uint8Array | null,
  options: KvListOptions | null | undefined,
): Promise<KvEntry[]> {
  const { reverse = false, limit } = options ?? {};
  if (limit !== undefined && !(Number.isInteger(limit) && limit >= 0)) {
    throw invalidArgument("limit", `${limit} is not a whole number from 0`);
  }
  const packed = await read(kv, (ticket) => kvList(kv, start, end, reverse, limit ?? -1, ticket));
  const parts = unpack(packed) as Buffer[];
  const entries: KvEntry[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    entries.push({ key: parts[at] as Buffer, value: parts[at + 1] as Buffer });
  }
  return entries;
}

function read(kv: Kv, start: (ticket: number) => void): Promise<Uint8Array | null> {
  return bagOf(kv).home.tickets.wait(start, { bridged: true });
}

function write(kv: Kv, start: (ticket: number) => void): Promise<unknown> {
  const bag = bagOf(kv);
  const written = bag.home.tickets.wait(start, { bridged: true });
  wrote(kv);
  return written;
}

/** Each part as its length plus one in four bytes and its bytes; 0 for none. */
export function unpack(packed: Uint8Array | null): (Buffer | null)[] {
  if (packed === null) return [];
  const all = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
  const parts: (Buffer | null)[] = [];
  let at = 0;
  while (at < all.length) {
    const length = all.readUInt32LE(at);
    at += 4;
    if (length === 0) {
      parts.push(null);
      continue;
    }
    // A copy: one part that is kept must not keep all others (2).
    parts.push(Buffer.from(all.subarray(at, at + length - 1)));
    at += length - 1;
  }
  return parts;
}
