/**
 * `c.conns`: the connections of an actor by their ids, always as they are.
 *
 * 1. Whoever goes through them sees each that was there at the beginning and still is: connections may
 *    be ended meanwhile.
 */

import { dispatch } from "../native-half";
import type { Conn } from "./conn";
import type { Desk } from "./desk";

/** What going through a map is called differs between the versions of TypeScript. */
type All = ReadonlyMap<string, Conn>;
type Entries = ReturnType<All["entries"]>;

export class Conns implements ReadonlyMap<string, Conn> {
  readonly #desk: Desk;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  get size(): number {
    return this.#ids().length;
  }

  get(id: string): Conn | undefined {
    return this.#desk.get(String(id));
  }

  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  forEach(
    visit: (conn: Conn, id: string, conns: ReadonlyMap<string, Conn>) => void,
    self?: unknown,
  ): void {
    for (const [id, conn] of this) visit.call(self, conn, id, this);
  }

  *entries(): Entries {
    for (const id of this.#ids()) {
      const conn = this.#desk.get(id);
      if (conn !== undefined) yield [id, conn];
    }
  }

  *keys(): ReturnType<All["keys"]> {
    for (const [id] of this.entries()) yield id;
  }

  *values(): ReturnType<All["values"]> {
    for (const [, conn] of this.entries()) yield conn;
  }

  [Symbol.iterator](): Entries {
    return this.entries();
  }

  get [Symbol.toStringTag](): string {
    return "Conns";
  }

  #ids(): string[] {
    return dispatch.connectionIds(this.#desk.live.bag);
  }
}
