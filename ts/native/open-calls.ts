/**
 * The calls of one generation whose functions have not ended, by their numbers.
 *
 * Most actors have none or one at a time, and most actors are idle: a map of its own for each would
 * be a good part of what an idle actor weighs. So the first has a place, and a map is there only
 * while there are more.
 */
import type { RivetError } from "./errors.js";

/** A call whose function has not ended. */
export interface OpenCall {
  /** Nobody waits for it any more. */
  cancel(timedOut: boolean): void;
  /** Its generation ended with this. */
  stop(error: RivetError): void;
}

export class OpenCalls {
  /** The number of `#first`; 0, which no call has, when there is none. */
  #number = 0;
  #first: OpenCall | undefined;
  #others: Map<number, OpenCall> | undefined;

  get size(): number {
    return (this.#number === 0 ? 0 : 1) + (this.#others?.size ?? 0);
  }

  get(number: number): OpenCall | undefined {
    return number === this.#number ? this.#first : this.#others?.get(number);
  }

  /** Keeps a call under a number that none has had. */
  set(number: number, call: OpenCall): void {
    if (this.#number === 0) {
      this.#number = number;
      this.#first = call;
    } else {
      this.#others ??= new Map();
      this.#others.set(number, call);
    }
  }

  delete(number: number): void {
    if (number === this.#number) {
      this.#number = 0;
      this.#first = undefined;
    } else if (this.#others?.delete(number) && this.#others.size === 0) {
      this.#others = undefined;
    }
  }

  /** All of them, in the order of their numbers. */
  inOrder(): OpenCall[] {
    const all = [...(this.#others ?? [])];
    if (this.#first !== undefined) all.push([this.#number, this.#first]);
    return all.sort(([a], [b]) => a - b).map(([, call]) => call);
  }
}
