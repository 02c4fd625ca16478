/** `conn`: one client of an actor, as its author sees it. */

import type { Live } from "../actors/live";
import { RivetError, readingArgument } from "../errors";
import { type NativeConnection, unbridged } from "../native-half";
import { Cell } from "./cell";
import type { Desk } from "./desk";
import { encodeArguments } from "./events";
import { decodeParams } from "./params";

export class Conn {
  readonly #desk: Desk;
  readonly #handle: NativeConnection;
  #id: string | undefined;
  #params: { readonly value: unknown } | undefined;
  #cell: Cell | undefined;

  constructor(desk: Desk, handle: NativeConnection) {
    this.#desk = desk;
    this.#handle = handle;
  }

  get id(): string {
    this.#id ??= this.#handle.id();
    return this.#id;
  }

  get params(): unknown {
    this.#params ??= { value: decodeParams(this.#handle) };
    return this.#params.value;
  }

  get state(): unknown {
    return this.#state().value;
  }

  set state(value: unknown) {
    this.#state().value = value;
  }

  get isHibernatable(): boolean {
    return this.#handle.isHibernatable();
  }

  send(name: string, ...args: unknown[]): void {
    const handle = this.#handle;
    this.#desk.tell(name, args, (checked) => {
      handle.send(
        name,
        readingArgument(() => encodeArguments(checked, handle.isRemote())),
      );
    });
  }

  async disconnect(reason?: string): Promise<void> {
    this.#desk.settle();
    const ended = plainly(this.#handle.disconnect(reason));
    await this.#desk.live.waits(ended);
  }

  /** Its state is to be read anew. */
  reload(): void {
    this.#cell?.outdate();
    this.#cell = undefined;
  }

  #state(): Cell {
    const { live } = this.#desk;
    if (!live.definition.hasConnState) throw withoutState(live);
    this.#cell ??= new Cell(this.#desk, this.#handle);
    return this.#cell;
  }
}

function withoutState(live: Live): RivetError {
  return new RivetError(
    "connection",
    "state_not_enabled",
    "connections of this actor have no state: give it connState or createConnState",
    { actor: live.specifier },
  );
}

async function plainly<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw unbridged(error);
  }
}
