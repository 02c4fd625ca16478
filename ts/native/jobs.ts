/**
 * The kinds of jobs and their records, as `src/node/job.rs` writes them; a test
 * compares the two tables.
 *
 * A batch is one array: a buffer or null, then records of `kind, actor, ticket` and the fields. Few
 * bytes are a number that says where they lie in the buffer of the batch.
 */

/** The number of each kind: its place in the table of the Rust side, from 1. */
export const Kind = {
  START: 1,
  HOOK: 2,
  RUN: 3,
  ACTION: 4,
  CANCEL: 5,
  SERIALIZE: 6,
  COMMITTED: 7,
  ABORT: 8,
  DEADLINE: 9,
  STOPPED: 10,
  SETTLED: 11,
  LOG: 12,
  FORGOTTEN: 13,
  BEGIN: 14,
  FIRED: 15,
  CONNECTION: 16,
  OVER: 17,
  SESSION: 18,
  ASKED: 19,
  UNASKED: 20,
} as const;

export type Kind = (typeof Kind)[keyof typeof Kind];

/** How many fields follow `kind, actor, ticket`, by kind. */
export const FIELDS: Readonly<Record<Kind, number>> = {
  [Kind.START]: 2, // factory, identity as JSON
  [Kind.HOOK]: 3, // label, input or null, 1 for a new actor
  [Kind.RUN]: 0,
  [Kind.ACTION]: 4, // name, arguments, caller, origin
  [Kind.CANCEL]: 2, // 1 when it timed out, error record or null
  [Kind.SERIALIZE]: 1, // 1 for the inspector
  [Kind.COMMITTED]: 2, // number, error record or null
  [Kind.ABORT]: 1, // reason
  [Kind.DEADLINE]: 0,
  [Kind.STOPPED]: 2, // outcome, error record or null
  [Kind.SETTLED]: 2, // 0 with bytes or null, 1 with an error record
  [Kind.LOG]: 5, // level, target, message, fields as JSON, how many were lost
  [Kind.FORGOTTEN]: 1, // factory
  [Kind.BEGIN]: 0,
  [Kind.FIRED]: 3, // name, arguments, why as JSON
  [Kind.CONNECTION]: 4, // label, id of the connection, request as JSON or null, event or null
  [Kind.OVER]: 5, // name, arguments, caller, origin, id of the connection
  [Kind.SESSION]: 4, // what, its text, its bytes or null, error record or null
  [Kind.ASKED]: 3, // number of an application or a factory, which of them, packed request
  [Kind.UNASKED]: 0,
};

/** What a place in the buffer of a batch is multiplied with before the length is added. */
const PLACE = 65_536;

const EMPTY = Buffer.alloc(0);

/** Reads a batch, record by record. Field types are those of the table above. */
export class Records {
  kind: Kind = Kind.LOG;
  actor = 0;
  ticket = 0;
  readonly #batch: readonly unknown[];
  #next = 1;
  #fields = 0;

  constructor(batch: readonly unknown[]) {
    this.#batch = batch;
  }

  /** Moves to the next record; false after the last. */
  advance(): boolean {
    const at = this.#next;
    if (at >= this.#batch.length) return false;
    this.kind = this.#batch[at] as Kind;
    this.actor = this.#batch[at + 1] as number;
    this.ticket = this.#batch[at + 2] as number;
    this.#fields = at + 3;
    this.#next = this.#fields + FIELDS[this.kind];
    return true;
  }

  number(field: number): number {
    return this.#batch[this.#fields + field] as number;
  }

  text(field: number): string {
    return this.#batch[this.#fields + field] as string;
  }

  textOrNull(field: number): string | null {
    return this.#batch[this.#fields + field] as string | null;
  }

  bytes(field: number): Uint8Array {
    return this.#bytesAt(this.#batch[this.#fields + field] as Uint8Array | number);
  }

  bytesOrNull(field: number): Uint8Array | null {
    const found = this.#batch[this.#fields + field] as Uint8Array | number | null;
    return found === null ? null : this.#bytesAt(found);
  }

  #bytesAt(found: Uint8Array | number): Uint8Array {
    if (typeof found !== "number") return found;
    const length = found % PLACE;
    const start = (found - length) / PLACE;
    // None where all bytes of the batch are empty.
    const shared = this.#batch[0] as Buffer | null;
    return shared === null ? EMPTY : shared.subarray(start, start + length);
  }
}
