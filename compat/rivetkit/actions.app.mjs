// Actions: what they take, give and throw.

import { actor, UserError } from "rivetkit";

const tuple = (check) => ({
  "~standard": {
    version: 1,
    vendor: "compat",
    validate: (value) => (check(value) ? { value } : { issues: [{ message: "not so" }] }),
  },
});

const calls = actor({
  state: { count: 0 },
  actions: {
    same: (_c, value) => value,
    all: (_c, ...args) => args,
    nothing: () => {},
    async later(_c, value) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return value;
    },
    add: (c, by) => {
      c.state.count += by;
      return c.state.count;
    },
    refuse() {
      throw new UserError("full", { code: "full", metadata: { left: 0 } });
    },
    refusePlainly() {
      throw new UserError("no reason");
    },
    async fail() {
      throw new Error("a secret");
    },
    throwText() {
      throw "a secret";
    },
    group: {
      twice: (_c, n) => n * 2,
      deep: { thrice: (_c, n) => n * 3 },
    },
    large: (_c, size) => "x".repeat(size),
    notCode: () => ({ f: () => 1 }),
    about: (c) => ({
      id: c.actorId,
      name: c.name,
      key: c.key,
      region: typeof c.region,
      request: typeof c.request,
      conn: typeof c.conn.id,
      aborted: c.aborted,
    }),
  },
});

const slow = actor({
  state: { aborted: 0 },
  options: { actionTimeout: 1_000 },
  actions: {
    never(c) {
      c.abortSignal.addEventListener("abort", () => {
        c.state.aborted += 1;
      });
      return new Promise(() => {});
    },
    aborted: (c) => c.state.aborted,
  },
});

const checked = actor({
  actionInputSchemas: { grow: tuple(([by]) => typeof by === "number") },
  onBeforeActionResponse: (_c, name, args, output) =>
    name === "grow" ? { name, args, output } : output,
  actions: {
    grow: (_c, by) => by + 1,
    plain: () => "plain",
  },
});

export const actors = { calls, slow, checked };
