/**
 * The native objects through which a generation stores. Each is made once, when it is first asked for:
 * one for each operation would cost more than many an operation, and has to be collected.
 */

import type {
  NativeContext,
  NativeDatabase,
  NativeKv,
  NativeQueue,
  NativeSchedule,
} from "../native-half";

export class Natives {
  readonly #context: () => NativeContext;
  #kv: NativeKv | undefined;
  #sql: NativeDatabase | undefined;
  #queue: NativeQueue | undefined;
  #schedule: NativeSchedule | undefined;

  constructor(context: () => NativeContext) {
    this.#context = context;
  }

  get kv(): NativeKv {
    this.#kv ??= this.#context().kv();
    return this.#kv;
  }

  get sql(): NativeDatabase {
    this.#sql ??= this.#context().sql();
    return this.#sql;
  }

  get queue(): NativeQueue {
    this.#queue ??= this.#context().queue();
    return this.#queue;
  }

  get schedule(): NativeSchedule {
    this.#schedule ??= this.#context().schedule();
    return this.#schedule;
  }
}
