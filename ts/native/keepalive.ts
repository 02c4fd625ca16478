/**
 * Keeps the process alive while this environment owes something: an answer, a
 * commit, a dirty state.
 *
 * Released lazily, after the loop has turned: a program that calls again and again
 * would otherwise hold and release for every call.
 */

import { setImmediate, setInterval } from "./clockwork.js";

/** As long as a timer of Node.js can be. */
const FAR_MS = 2 ** 31 - 1;

export class KeepAlive {
  #count = 0;
  #holding = false;
  #releasing = false;
  #timer: NodeJS.Timeout | undefined;

  /** How much is owed. */
  get count(): number {
    return this.#count;
  }

  hold(): void {
    this.#count += 1;
    if (this.#holding) return;
    this.#holding = true;
    if (this.#timer === undefined) this.#timer = setInterval(() => {}, FAR_MS);
    else this.#timer.ref();
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
    this.#timer?.unref();
  };
}
