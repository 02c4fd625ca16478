/**
 * The state of a transaction: a copy that notices its changes as the state does, and takes its
 * place at the commit.
 */

import { sameBytes } from "../codec";
import { classify } from "../codec/classify";
import { copy } from "../codec/copy";
import { setOwn } from "../codec/parts";
import { unwrap } from "../codec/proxies";
import { adopt, type Owner, seen } from "../state";

export class Draft implements Owner {
  readonly called = "state";
  #root: unknown;
  #changed: boolean;
  /** A part that cannot be watched was handed out. */
  #suspected = false;
  readonly #permit: () => void;

  /** A copy of `root`; `permit` throws once the transaction has ended. */
  constructor(root: unknown, permit: () => void, changed: boolean) {
    this.#permit = permit;
    this.#changed = changed;
    const own = copy(root, "state");
    this.#root = typeof own === "object" && own !== null ? adopt(own, this) : own;
  }

  get root(): unknown {
    return this.#root;
  }

  get state(): unknown {
    this.permit();
    return seen(this.#root, this);
  }

  set state(value: unknown) {
    this.permit();
    this.#root = adopt(value, this);
    this.#changed = true;
  }

  permit(): void {
    this.#permit();
  }

  change(): void {
    this.permit();
    this.#changed = true;
  }

  suspect(): void {
    this.#suspected = true;
  }

  /** What `encode` makes of it, if it differs from `before`. */
  encoded(encode: (root: unknown) => Uint8Array, before: unknown): Uint8Array | undefined {
    if (!this.#changed && !this.#suspected) return undefined;
    const bytes = encode(this.#root);
    // Looked at and not changed, as far as can be seen.
    if (!this.#changed && sameBytes(bytes, encode(before))) return undefined;
    return bytes;
  }
}

/**
 * The state that `next` stands for. Plain objects keep their identity, so that what an author holds
 * of the state stays part of it; everything else is replaced.
 */
export function merged(old: unknown, next: unknown): unknown {
  if (!isPlain(old)) return next;
  const kept = unwrap(old);
  if (!isPlain(next) || !Object.isExtensible(kept)) return next;
  const [before, after] = [kept as Record<string, unknown>, next as Record<string, unknown>];
  for (const key of Object.keys(before)) {
    if (!Object.hasOwn(after, key)) delete before[key];
  }
  for (const key of Object.keys(after)) {
    const was = Object.hasOwn(before, key) ? before[key] : undefined;
    setOwn(before, key, merged(was, after[key]));
  }
  return before;
}

function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && classify(unwrap(value)) === "object";
}
