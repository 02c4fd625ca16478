/**
 * How the values of SQL cross the boundary: the counterpart of `src/node/sql/packing.rs`,
 * which describes the form.
 */

/** A value that a parameter can have. A truth value is the integer 0 or 1. */
export type SqlBinding = null | undefined | number | bigint | string | boolean | Uint8Array;

/** A value out of a row: an integer beyond the safe range is a bigint. */
export type SqlCell = null | number | bigint | string | Buffer;

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
  if (typeof value === "bigint") return value >= -LARGEST && value < LARGEST;
  return ["undefined", "number", "string", "boolean"].includes(typeof value);
}

/** Packs values for the parameters from the first on. */
export function packPositional(values: readonly SqlBinding[]): Uint8Array | null {
  if (values.length === 0) return null;
  const out = new Packer(1, values.length);
  for (const value of values) out.put(value);
  return out.bytes();
}

/** Packs values for parameters by name. */
export function packNamed(values: Readonly<Record<string, SqlBinding>>): Uint8Array | null {
  const entries = Object.entries(values);
  const out = new Packer(2, 2 * entries.length);
  for (const [name, value] of entries) {
    out.put(name);
    out.put(value);
  }
  return out.bytes();
}

/** What is bound when nothing is. */
export const NOTHING_BOUND = new Uint8Array(1);

class Packer {
  #buffer: Buffer;
  #at = 1;

  constructor(kind: number, values: number) {
    this.#buffer = Buffer.allocUnsafe(1 + 16 * values);
    this.#buffer[0] = kind;
  }

  put(value: SqlBinding): void {
    if (value === null || value === undefined) this.#tag(Kind.NULL, 0);
    else if (typeof value === "number") this.#number(value);
    else if (typeof value === "string") this.#text(value);
    else if (typeof value === "boolean") this.#integer(value ? 1n : 0n);
    else if (typeof value === "bigint") this.#integer(value);
    else this.#blob(value);
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#at);
  }

  #number(value: number): void {
    // -0 has no place among the integers.
    if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
      this.#tag(Kind.INTEGER, 8);
      const high = Math.floor(value / 2 ** 32);
      this.#buffer.writeUInt32LE(value - high * 2 ** 32, this.#at);
      this.#buffer.writeInt32LE(high, this.#at + 4);
    } else {
      this.#tag(Kind.REAL, 8);
      this.#buffer.writeDoubleLE(value, this.#at);
    }
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

/** Reads one outcome. */
export function unpackResult(packed: Uint8Array | null): SqlResult {
  return unpackResults(packed)[0] ?? { columns: [], rows: [], changes: 0 };
}

class Reader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(packed: Uint8Array) {
    this.#buffer = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
  }

  get isDone(): boolean {
    return this.#at >= this.#buffer.length;
  }

  result(): SqlResult {
    const columns: string[] = [];
    for (let left = this.#length(); left > 0; left -= 1) columns.push(this.#text());
    const changes = this.#double();
    const id = this.#cell();
    const rows: SqlCell[][] = [];
    for (let left = this.#length(); left > 0; left -= 1) {
      const row: SqlCell[] = new Array(columns.length);
      for (let at = 0; at < columns.length; at += 1) row[at] = this.#cell();
      rows.push(row);
    }
    const result = { columns, rows, changes };
    return id === null ? result : { ...result, lastInsertRowId: id as number | bigint };
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
        const bytes = Buffer.from(this.#buffer.subarray(this.#at, end));
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
    const length = this.#length();
    return this.#at + length;
  }

  #length(): number {
    this.#at += 4;
    return this.#buffer.readUInt32LE(this.#at - 4);
  }
}
