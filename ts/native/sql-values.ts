/**
 * How the values of SQL cross the boundary: the counterpart of `src/node/sql/packing.rs`,
 * which describes the form.
 */

/** A value that a parameter can have. A truth value is the integer 0 or 1. */
export type SqlBinding = null | undefined | number | bigint | string | boolean | Uint8Array;

/** A number that is bound as a floating-point one, also where it is whole. */
export class Real {
  constructor(readonly value: number) {}
}

/**
 * A value out of a row: an integer beyond the safe range is a bigint. Bytes are no `Buffer`: RivetKit's
 * workflows take the memory behind a slice of them for the slice, which that of a `Buffer` is not.
 */
export type SqlCell = null | number | bigint | string | Uint8Array;

/** What one statement answers. */
export interface SqlResult {
  readonly columns: string[];
  readonly rows: SqlCell[][];
  /** Rows that it inserted, updated or deleted. */
  readonly changes: number;
  /** The id of the row inserted last; only with changes. */
  readonly lastInsertRowId?: number | bigint;
}

const Kind = { NULL: 0, INTEGER: 1, REAL: 2, TEXT: 3, BLOB: 4 } as const;
const LARGEST = 2n ** 63n;

/** Whether a value can be bound. */
export function isBinding(value: unknown): value is SqlBinding {
  if (value === null || value instanceof Uint8Array) return true;
  switch (typeof value) {
    case "bigint":
      return value >= -LARGEST && value < LARGEST;
    case "undefined":
    case "number":
    case "string":
    case "boolean":
      return true;
    default:
      return false;
  }
}

/** Values for parameters, in their order or by their names. */
export type SqlBindings = readonly SqlBinding[] | Readonly<Record<string, SqlBinding>>;

/** Packs values for the parameters from the first on. */
export function packPositional(values: readonly (SqlBinding | Real)[]): Uint8Array | null {
  if (values.length === 0) return null;
  return new Packer(Buffer.allocUnsafe(1 + 16 * values.length)).positional(values).bytes();
}

/** Packs values for parameters by name. */
export function packNamed(values: Readonly<Record<string, SqlBinding>>): Uint8Array | null {
  return new Packer(Buffer.allocUnsafe(256)).named(values).bytes();
}

/** What is bound when nothing is. */
// Its type is said because older compilers know no type parameter of Uint8Array.
export const NOTHING_BOUND: Uint8Array = new Uint8Array(1);

/** Where bindings go to a call that reads them before it returns, and its answer comes back. */
const ROOM = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * Runs `call` with a buffer that has packed bindings in its first `bound` bytes, none for 0. It reads
 * them and puts its outcome in their place, whose length it returns; or the outcome itself where there
 * is not room enough.
 */
export function throughRoom(
  sql: string,
  bindings: SqlBindings,
  call: (room: Buffer, bound: number) => number | Uint8Array,
): SqlResult {
  roomPacker.reset(ROOM);
  if (!Array.isArray(bindings)) roomPacker.named(bindings as Readonly<Record<string, SqlBinding>>);
  else if (bindings.length > 0) roomPacker.positional(bindings);
  const room = roomPacker.buffer;
  const outcome = call(room, roomPacker.length);
  if (typeof outcome === "number") roomReader.reset(room, outcome);
  else roomReader.reset(bufferOf(outcome), outcome.length);
  return roomReader.result(sql);
}

class Packer {
  #buffer: Buffer;
  #at = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  reset(buffer: Buffer): void {
    this.#buffer = buffer;
    this.#at = 0;
  }

  get buffer(): Buffer {
    return this.#buffer;
  }

  get length(): number {
    return this.#at;
  }

  positional(values: readonly (SqlBinding | Real)[]): this {
    this.#tag(1, 0);
    for (const value of values) this.put(value);
    return this;
  }

  named(values: Readonly<Record<string, SqlBinding>>): this {
    this.#tag(2, 0);
    for (const name of Object.keys(values)) {
      this.put(name);
      this.put(values[name]);
    }
    return this;
  }

  put(value: SqlBinding | Real): void {
    if (value === null || value === undefined) this.#tag(Kind.NULL, 0);
    else if (typeof value === "number") this.#number(value);
    else if (typeof value === "string") this.#text(value);
    else if (typeof value === "boolean") this.#integer(value ? 1n : 0n);
    else if (typeof value === "bigint") this.#integer(value);
    else if (value instanceof Real) this.#real(value.value);
    else this.#blob(value);
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#at);
  }

  #number(value: number): void {
    // -0 has no place among the integers.
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) {
      this.#real(value);
      return;
    }
    this.#tag(Kind.INTEGER, 8);
    const high = Math.floor(value / 2 ** 32);
    this.#buffer.writeUInt32LE(value - high * 2 ** 32, this.#at);
    this.#buffer.writeInt32LE(high, this.#at + 4);
    this.#at += 8;
  }

  #real(value: number): void {
    this.#tag(Kind.REAL, 8);
    this.#buffer.writeDoubleLE(value, this.#at);
    this.#at += 8;
  }

  #integer(value: bigint): void {
    this.#tag(Kind.INTEGER, 8);
    this.#buffer.writeBigInt64LE(value, this.#at);
    this.#at += 8;
  }

  #text(value: string): void {
    const length = Buffer.byteLength(value, "utf8");
    this.#tag(Kind.TEXT, 4 + length);
    this.#buffer.writeUInt32LE(length, this.#at);
    this.#buffer.write(value, this.#at + 4, "utf8");
    this.#at += 4 + length;
  }

  #blob(value: Uint8Array): void {
    this.#tag(Kind.BLOB, 4 + value.length);
    this.#buffer.writeUInt32LE(value.length, this.#at);
    this.#buffer.set(value, this.#at + 4);
    this.#at += 4 + value.length;
  }

  #tag(kind: number, room: number): void {
    const needed = this.#at + 1 + room;
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
      larger.set(this.#buffer.subarray(0, this.#at));
      this.#buffer = larger;
    }
    this.#buffer[this.#at] = kind;
    this.#at += 1;
  }
}

/** Reads outcomes, one behind the other. */
export function unpackResults(packed: Uint8Array | null): SqlResult[] {
  if (packed === null) return [];
  const reader = new Reader(packed);
  const results: SqlResult[] = [];
  while (!reader.isDone) results.push(reader.result());
  return results;
}

/** Reads one outcome; `sql` is what it is of, if that may come again. */
export function unpackResult(packed: Uint8Array | null, sql?: string): SqlResult {
  if (packed === null || packed.length === 0) return { columns: [], rows: [], changes: 0 };
  return new Reader(packed).result(sql);
}

/** The names of columns, and how they are packed. */
interface Head {
  readonly packed: Buffer;
  readonly columns: string[];
}

/** The heads that statements had last: names are seldom others, and decoding them takes long. */
const heads = new Map<string, Head>();
const MAX_HEADS = 512;

class Reader {
  #buffer: Buffer;
  #length: number;
  #at = 0;

  constructor(packed: Uint8Array) {
    this.#buffer = bufferOf(packed);
    this.#length = packed.length;
  }

  reset(buffer: Buffer, length: number): void {
    this.#buffer = buffer;
    this.#length = length;
    this.#at = 0;
  }

  get isDone(): boolean {
    return this.#at >= this.#length;
  }

  result(sql?: string): SqlResult {
    const columns = this.#columns(sql);
    const changes = this.#double();
    const id = this.#cell();
    const rows: SqlCell[][] = [];
    for (let left = this.#count(); left > 0; left -= 1) {
      const row: SqlCell[] = [];
      for (let at = 0; at < columns.length; at += 1) row.push(this.#cell());
      rows.push(row);
    }
    if (id === null) return { columns, rows, changes };
    return { columns, rows, changes, lastInsertRowId: id as number | bigint };
  }

  #columns(sql: string | undefined): string[] {
    const known = sql === undefined ? undefined : heads.get(sql);
    if (known !== undefined && this.#skip(known.packed)) return known.columns;
    const start = this.#at;
    const columns: string[] = [];
    for (let left = this.#count(); left > 0; left -= 1) columns.push(this.#text());
    if (sql === undefined || columns.length === 0) return columns;
    if (heads.size >= MAX_HEADS) heads.clear();
    heads.set(sql, { packed: Buffer.from(this.#buffer.subarray(start, this.#at)), columns });
    return columns;
  }

  /** Goes past some bytes if they are what comes next. */
  #skip(bytes: Buffer): boolean {
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.#buffer[this.#at + at] !== bytes[at]) return false;
    }
    this.#at += bytes.length;
    return true;
  }

  #cell(): SqlCell {
    const kind = this.#buffer[this.#at];
    this.#at += 1;
    switch (kind) {
      case Kind.INTEGER:
        return this.#integer();
      case Kind.REAL:
        return this.#double();
      case Kind.TEXT:
        return this.#text();
      case Kind.BLOB: {
        const end = this.#end();
        // A copy: one blob that is kept must not keep all rows.
        const bytes = new Uint8Array(this.#buffer.subarray(this.#at, end));
        this.#at = end;
        return bytes;
      }
      default:
        return null;
    }
  }

  #integer(): number | bigint {
    const low = this.#buffer.readUInt32LE(this.#at);
    const high = this.#buffer.readInt32LE(this.#at + 4);
    this.#at += 8;
    const value = high * 2 ** 32 + low;
    return Number.isSafeInteger(value) ? value : this.#buffer.readBigInt64LE(this.#at - 8);
  }

  #double(): number {
    this.#at += 8;
    return this.#buffer.readDoubleLE(this.#at - 8);
  }

  #text(): string {
    const end = this.#end();
    const text = this.#buffer.toString("utf8", this.#at, end);
    this.#at = end;
    return text;
  }

  #end(): number {
    const length = this.#count();
    return this.#at + length;
  }

  #count(): number {
    this.#at += 4;
    return this.#buffer.readUInt32LE(this.#at - 4);
  }
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

// One of each for all synchronous statements: nothing else runs while one of them packs or reads.
const roomPacker = new Packer(ROOM);
const roomReader = new Reader(ROOM);
