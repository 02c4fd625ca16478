/**
 * `c.kv`: an actor's keys and values.
 *
 * 1. One key space: text is its bytes in UTF-8, whichever method it goes through.
 * 2. No method throws: what is wrong with an argument is the promise's.
 */

import { written } from "../actors/written";
import { checkKeys, describe } from "../definition/keys";
import { checkedArgument, invalidArgument } from "../errors";
import { type NativeKv, unbridged } from "../native-half";
import type { ActorKv, KvKey, KvKeyTypes, KvTypes, KvValue } from "../types";

const types: readonly (keyof KvTypes)[] = ["text", "binary", "arrayBuffer"];
const keyTypes: readonly (keyof KvKeyTypes)[] = ["text", "binary"];

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export class Keys implements ActorKv {
  readonly #native: () => NativeKv;

  constructor(native: () => NativeKv) {
    this.#native = native;
  }

  async get<T extends keyof KvTypes = "text">(
    key: KvKey,
    options?: { type?: T | undefined },
  ): Promise<KvTypes[T] | null> {
    const { type } = readOptions(options, "get", ["type"]);
    const [value] = await this.#run((kv) => kv.batchGet([keyOf(key, "key")]));
    return value === null || value === undefined ? null : (valueAs(value, type) as KvTypes[T]);
  }

  put(key: KvKey, value: KvValue, options?: { type?: keyof KvTypes | undefined }): Promise<void> {
    return this.#write((kv) => {
      readOptions(options, "put", ["type"]);
      return kv.put(keyOf(key, "key"), valueBytes(value));
    });
  }

  delete(key: KvKey): Promise<void> {
    return this.#write((kv) => kv.delete(keyOf(key, "key")));
  }

  async batchGet(keys: readonly Uint8Array[]): Promise<(Uint8Array | null)[]> {
    const found = await this.#run((kv) => kv.batchGet(listOf(keys, "keys").map(bytesOfKey)));
    return found.map((value) => (value === null ? null : plainBytes(value)));
  }

  batchPut(entries: readonly (readonly [key: Uint8Array, value: Uint8Array])[]): Promise<void> {
    return this.#write((kv) => {
      const pairs = listOf(entries, "entries").map((entry, at) => {
        if (!Array.isArray(entry) || entry.length !== 2) {
          throw invalidArgument(`entry ${at} is ${describe(entry)}, not a key and a value`);
        }
        return { key: bytesOf(entry[0], `key ${at}`), value: bytesOf(entry[1], `value ${at}`) };
      });
      return kv.batchPut(pairs);
    });
  }

  batchDelete(keys: readonly Uint8Array[]): Promise<void> {
    return this.#write((kv) => kv.batchDelete(listOf(keys, "keys").map(bytesOfKey)));
  }

  deleteRange(start: KvKey, end: KvKey): Promise<void> {
    return this.#write((kv) => kv.deleteRange(keyOf(start, "start"), keyOf(end, "end")));
  }

  async listPrefix<T extends keyof KvTypes = "text", K extends keyof KvKeyTypes = "text">(
    prefix: KvKey,
    options?: object,
  ): Promise<[KvKeyTypes[K], KvTypes[T]][]> {
    const read = readOptions(options, "listPrefix", listed);
    const found = await this.#run((kv) => kv.listPrefix(keyOf(prefix, "prefix"), read));
    return found.map(({ key, value }) => shown(key, value, read)) as [KvKeyTypes[K], KvTypes[T]][];
  }

  async listRange<T extends keyof KvTypes = "text", K extends keyof KvKeyTypes = "text">(
    start: KvKey,
    end: KvKey,
    options?: object,
  ): Promise<[KvKeyTypes[K], KvTypes[T]][]> {
    const read = readOptions(options, "listRange", listed);
    const found = await this.#run((kv) =>
      kv.listRange(keyOf(start, "start"), keyOf(end, "end"), read),
    );
    return found.map(({ key, value }) => shown(key, value, read)) as [KvKeyTypes[K], KvTypes[T]][];
  }

  list<T extends keyof KvTypes = "text", K extends keyof KvKeyTypes = "text">(
    prefix: KvKey,
    options?: object,
  ): Promise<[KvKeyTypes[K], KvTypes[T]][]> {
    return this.listPrefix<T, K>(prefix, options);
  }

  #write(call: (kv: NativeKv) => Promise<void>): Promise<void> {
    return written(() => this.#run(call));
  }

  async #run<T>(call: (kv: NativeKv) => Promise<T>): Promise<T> {
    try {
      return await call(this.#native());
    } catch (error) {
      throw unbridged(error);
    }
  }
}

const listed = ["type", "keyType", "reverse", "limit"];

interface ReadOptions {
  readonly type: keyof KvTypes;
  readonly keyType: keyof KvKeyTypes;
  readonly reverse: boolean;
  readonly limit: number | undefined;
}

function readOptions(given: object | undefined, method: string, known: string[]): ReadOptions {
  const options = (given ?? {}) as Record<string, unknown>;
  const place = `options of kv.${method}()`;
  checkedArgument(() => checkKeys(options, { place, known }));
  const { type = "text", keyType = "text", reverse = false, limit } = options;
  if (!types.includes(type as keyof KvTypes)) {
    throw invalidArgument(
      `type of ${place} is ${describe(type)}, not "text", "binary" or "arrayBuffer"`,
    );
  }
  if (!keyTypes.includes(keyType as keyof KvKeyTypes)) {
    throw invalidArgument(`keyType of ${place} is ${describe(keyType)}, not "text" or "binary"`);
  }
  if (typeof reverse !== "boolean") {
    throw invalidArgument(`reverse of ${place} is ${describe(reverse)}, not true or false`);
  }
  if (limit !== undefined && !(Number.isInteger(limit) && (limit as number) >= 0)) {
    throw invalidArgument(`limit of ${place} is ${describe(limit)}, not a whole number from 0`);
  }
  return { type, keyType, reverse, limit } as ReadOptions;
}

function keyOf(key: unknown, what: string): Uint8Array {
  return typeof key === "string" ? encoder.encode(key) : bytesOf(key, what);
}

function valueBytes(value: unknown): Uint8Array {
  if (typeof value === "string") return encoder.encode(value);
  return value instanceof ArrayBuffer ? new Uint8Array(value) : bytesOf(value, "value");
}

function bytesOfKey(key: unknown, at: number): Uint8Array {
  return bytesOf(key, `key ${at}`);
}

function bytesOf(bytes: unknown, what: string): Uint8Array {
  if (bytes instanceof Uint8Array) return bytes;
  throw invalidArgument(`${what} is ${describe(bytes)}, not text or bytes`);
}

function listOf(list: unknown, what: string): readonly unknown[] {
  if (Array.isArray(list)) return list;
  throw invalidArgument(`${what} is ${describe(list)}, not a list`);
}

function shown(key: Buffer, value: Buffer, options: ReadOptions): [unknown, unknown] {
  return [
    options.keyType === "text" ? decoder.decode(key) : plainBytes(key),
    valueAs(value, options.type),
  ];
}

function valueAs(value: Buffer, type: keyof KvTypes): string | Uint8Array | ArrayBuffer {
  if (type === "text") return decoder.decode(value);
  const bytes = plainBytes(value);
  return type === "binary" ? bytes : (bytes.buffer as ArrayBuffer);
}

/** Bytes of their own, that share no buffer with others. */
function plainBytes(value: Buffer): Uint8Array {
  return Uint8Array.from(value);
}
