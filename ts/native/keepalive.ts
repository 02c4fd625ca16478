/**
 * Keeps the process alive while this environment owes something: an answer, a
 * commit, a dirty state.
 *
 * Released lazily, after the loop has turned: a program that calls again and again
 * would otherwise hold and release for every call.
 */

import { type Hold, holdProcess, setImmediate } from "./clockwork.js";

export class KeepAlive {
  #count = 0;
  #holding = false;
  #releasing = false;
  #hold: Hold | undefined;

  /** How much is owed. */
  get count(): number {
    return this.#count;
  }

  hold(): void {
    this.#count += 1;
    if (this.#holding) return;
    this.#holding = true;
    if (this.#hold === undefined) this.#hold = holdProcess();
    else this.#hold.ref();
  }

  release(): void {
    this.#count -= 1;
    if (this.#count > 0 || this.#releasing) return;
    this.#releasing = true;
    setImmediate(this.#settle);
  }

  readonly #settle = (): void => {
    this.#releasing = false;
    if (this.#count > 0) return;
    this.#holding = false;
    this.#hold?.unref();
  };
}
