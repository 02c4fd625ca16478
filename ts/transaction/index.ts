/**
 * `c.transaction`: what an author changes over several turns, all or nothing.
 *
 * 1. One at a time for each actor: others wait, in the order of their calls.
 * 2. What the calling turn changed before is committed first, on its own.
 * 3. A function that awaits nothing begins and ends within the turn of its call.
 * 4. Memory changes in the step that begins the commit. If that fails, the generation ends with it.
 * 5. What ends the transaction by itself, as its timeout does, rejects the promise of the call at once,
 *    whatever its function still waits for.
 */

import type { Live } from "../actors/live";
import { checkKeys, describe } from "../definition/keys";
import { invalidArgument, messageOf } from "../errors";
import { type NativeStateTransaction, transactions, unbridged } from "../native-half";
import type { ActorTransactionOptions } from "../types";
import { insideOf, nested, type Open, runInside } from "./inside";
import { Transaction } from "./transaction";

/** How long one may take when nothing is said, in milliseconds. */
const TIMEOUT = 5_000;

/** Who waits for the transactions of an actor (1). */
export class Line {
  #last: Promise<void> | undefined;

  /** Whether nobody has to be waited for. */
  get isFree(): boolean {
    return this.#last === undefined;
  }

  /** Stands at the end of the line: `turn` resolves at the front, and `leave` is to be called. */
  enter(): { readonly turn: Promise<void> | undefined; readonly leave: () => void } {
    const turn = this.#last;
    let gone!: () => void;
    const last = new Promise<void>((resolve) => {
      gone = resolve;
    });
    this.#last = last;
    const leave = (): void => {
      if (this.#last === last) this.#last = undefined;
      gone();
    };
    return { turn, leave };
  }
}

/** Runs `body` in a transaction of its own. */
export async function transact<T>(
  live: Live,
  body: (tx: Transaction) => T | Promise<T>,
  options: ActorTransactionOptions | undefined,
  owner: object,
): Promise<T> {
  if (typeof body !== "function") {
    throw invalidArgument(`transaction() takes a function, not ${describe(body)}`);
  }
  return runTransaction(live, body, {
    timeout: readTimeout(options),
    includesState: false,
    owner,
  });
}

/** What kind of transaction it is. */
interface Kind {
  readonly timeout: number;
  /** Whether `c.state` inside is that of the transaction. */
  readonly includesState: boolean;
  /** The call that it is made in; the generation where none is known. */
  readonly owner?: object;
}

/** The same for any kind. */
export async function runTransaction<T>(
  live: Live,
  body: (tx: Transaction) => T | Promise<T>,
  { timeout, includesState, owner }: Kind,
): Promise<T> {
  if (insideOf(live) !== undefined) throw nested(live);
  const { turn, leave } = live.line.enter();
  try {
    if (turn !== undefined) await live.waits(turn, owner);
    live.recheck();
    const { bag } = live;
    // (2)
    bag.home.turns.push(bag);
    const { transaction: native, opened } = transactions.open(bag.context, timeout);
    if (!native.isOpen()) await live.waits(plainly(opened), owner);
    const tx = new Transaction(live, native, includesState);
    return await runOpen(tx, native, body, owner);
  } finally {
    leave();
  }
}

async function runOpen<T>(
  tx: Transaction,
  native: NativeStateTransaction,
  body: (tx: Transaction) => T | Promise<T>,
  owner: object | undefined,
): Promise<T> {
  const open: Open = tx;
  let result: T;
  try {
    tx.begin();
    const given = runInside(open, () => body(tx));
    result = isPromise(given) ? await unlessEnded(given, native) : given;
    tx.commit();
  } catch (thrown) {
    await tx.live.waits(tx.rollBack(thrown), owner);
    throw tx.explained(unbridged(thrown));
  }
  await tx.live.waits(tx.durable(), owner);
  return result;
}

/** See (5). */
function unlessEnded<T>(given: PromiseLike<T>, native: NativeStateTransaction): Promise<T> {
  return new Promise((resolve, reject) => {
    given.then(resolve, reject);
    transactions.ended(native).catch(reject);
  });
}

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

function readTimeout(options: ActorTransactionOptions | undefined): number {
  const place = "options of transaction()";
  try {
    checkKeys(options ?? {}, { place, known: ["timeout"] });
  } catch (error) {
    throw invalidArgument(messageOf(error));
  }
  const { timeout = TIMEOUT } = options ?? {};
  if (!(typeof timeout === "number" && timeout > 0 && Number.isFinite(timeout))) {
    throw invalidArgument(`timeout of ${place} is ${describe(timeout)}, not milliseconds above 0`);
  }
  return timeout;
}

/** Errors of the native half with their fields. */
async function plainly<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw unbridged(error);
  }
}
