import type { StandardSchemaV1 } from "@standard-schema/spec";
import { expectTypeOf } from "expect-type";
import {
  type ActionContextOf,
  type ActorContextOf,
  type ActorOptionsInput,
  type AnyClient,
  actor,
  type BaseActorDefinition,
  type Context,
  type CreateContextOf,
  type CreateVarsContextOf,
  type RegistryConfig,
  RivetError,
  type RivetErrorLike,
  setup,
  type WakeContextOf,
} from "greenroom";

interface State {
  n: number;
  list: string[];
}

// A state as a literal.
actor({
  state: { n: 0, list: [] as string[] },
  actions: {
    go: (c) => expectTypeOf(c.state).toEqualTypeOf<{ n: number; list: string[] }>(),
  },
});

// createState without parameters, with an unknown context, with a context that is inferred.
actor({
  createState: () => ({ n: 0 }),
  actions: { go: (c) => expectTypeOf(c.state).toEqualTypeOf<{ n: number }>() },
});
actor({
  createState: (_c: unknown, input: { start: number }) => ({ n: input.start }),
  onCreate: (_c, input) => void expectTypeOf(input).toEqualTypeOf<{ start: number }>(),
  actions: { go: (c) => expectTypeOf(c.state).toEqualTypeOf<{ n: number }>() },
});
actor({
  createState: (c, input: { start: number }) => ({ n: input.start, id: c.actorId }),
  actions: { go: (c) => expectTypeOf(c.state).toEqualTypeOf<{ n: number; id: string }>() },
});
actor({
  createState: async (c, input: { start: number }) => ({ n: input.start, id: c.actorId }),
  onStateChange: (_c, state) => expectTypeOf(state).toEqualTypeOf<{ n: number; id: string }>(),
  actions: { go: (c) => expectTypeOf(c.state).toEqualTypeOf<{ n: number; id: string }>() },
});

// createVars sees the state, and everything after it sees the vars.
const withVars = actor({
  state: { n: 1 },
  createVars: (c) => ({ twice: c.state.n * 2, key: c.key }),
  onWake: (c) => void expectTypeOf(c.vars).toEqualTypeOf<{ twice: number; key: string[] }>(),
  run: async (c) => void expectTypeOf(c.vars.twice).toEqualTypeOf<number>(),
  actions: {
    go: (c) => expectTypeOf(c.vars).toEqualTypeOf<{ twice: number; key: string[] }>(),
  },
});
actor({
  createVars: async () => new Map<string, number>(),
  actions: { go: (c) => expectTypeOf(c.vars).toEqualTypeOf<Map<string, number>>() },
});
actor({
  vars: { cache: new Set<string>() },
  actions: { go: (c) => expectTypeOf(c.vars.cache).toEqualTypeOf<Set<string>>() },
});

// What createVars asks for is what setup() has to give.
interface Mailer {
  send(to: string): void;
}
const mails = actor({
  state: { n: 0 },
  createVars: (c, deps: { mailer: Mailer }) => ({ mailer: deps.mailer, at: c.state.n }),
  actions: { go: (c) => expectTypeOf(c.vars).toEqualTypeOf<{ mailer: Mailer; at: number }>() },
});
const clocks = actor({ createVars: (_c, deps: { zone: string }) => deps.zone });
const mailer: Mailer = { send: () => {} };
setup({ use: { mails }, deps: { mailer } });
setup({ use: { mails, clocks, withVars }, deps: { mailer, zone: "UTC" } });
setup({ use: { withVars }, deps: { whatever: 1 } });
// @ts-expect-error the deps are missing
setup({ use: { mails } });
// @ts-expect-error a part of the deps is missing
setup({ use: { mails, clocks }, deps: { mailer } });
// @ts-expect-error a part of the deps has a wrong type
setup({ use: { clocks }, deps: { zone: 1 } });

// Types that are named.
actor({
  types: {} as { state: State; vars: { socket: string | null } },
  state: { n: 0, list: [] },
  vars: { socket: null },
  actions: {
    go: (c) => {
      expectTypeOf(c.state).toEqualTypeOf<State>();
      expectTypeOf(c.vars.socket).toEqualTypeOf<string | null>();
    },
  },
});

// Misspelt members, wrong values and reserved names do not compile.
actor({
  state: { n: 0 },
  actions: {
    go: (c) => {
      expectTypeOf(c.caller).toEqualTypeOf<"client" | "actor" | "local" | "schedule">();
      // @ts-expect-error a misspelt member
      c.saveStat();
      // @ts-expect-error a misspelt field of the state
      c.state.m = 1;
      // @ts-expect-error a wrong type
      c.state.n = "one";
      // @ts-expect-error who called is read only
      c.caller = "client";
    },
  },
});
// @ts-expect-error an unknown key
actor({ stat: { n: 0 } });
// @ts-expect-error an unknown option
actor({ options: { sleepTimeot: 1 } });
// @ts-expect-error a name that handles have
actor({ actions: { connect: () => 1 } });
actor({
  createState: (c) => {
    // @ts-expect-error there is no state yet
    return { n: c.state };
  },
});

// State versions: what migrateState makes is checked, and infers nothing.
actor({
  state: { n: 0 },
  stateVersion: 2,
  migrateState: (old, from) => {
    expectTypeOf(old).toEqualTypeOf<unknown>();
    expectTypeOf(from).toEqualTypeOf<number>();
    return { n: 1 };
  },
  actions: { go: (c) => expectTypeOf(c.state).toEqualTypeOf<{ n: number }>() },
});
actor({
  state: { n: 0 },
  stateVersion: 2,
  // @ts-expect-error it makes another state
  migrateState: () => ({ m: 1 }),
});

// Nothing that an author meets is any.
actor({
  state: { n: 0 },
  createVars: (c) => {
    expectTypeOf<
      keyof { [K in keyof typeof c as 0 extends 1 & (typeof c)[K] ? K : never]: 0 }
    >().toBeNever();
    return { v: 1 };
  },
  actions: {
    go: async (c) => {
      expectTypeOf<
        keyof { [K in keyof typeof c as 0 extends 1 & (typeof c)[K] ? K : never]: 0 }
      >().toBeNever();
      expectTypeOf(await c.fetch("https://example.org")).toEqualTypeOf<Response>();
      expectTypeOf(c.abortSignal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(c.key).toEqualTypeOf<string[]>();
    },
  },
});

// Contexts by name.
expectTypeOf<ActorContextOf<typeof withVars>["vars"]>().toEqualTypeOf<{
  twice: number;
  key: string[];
}>();
expectTypeOf<ActionContextOf<typeof withVars>["state"]>().toEqualTypeOf<{ n: number }>();
expectTypeOf<WakeContextOf<typeof withVars>["vars"]["twice"]>().toEqualTypeOf<number>();
expectTypeOf<CreateVarsContextOf<typeof withVars>["state"]>().toEqualTypeOf<{ n: number }>();
expectTypeOf<CreateContextOf<typeof withVars>["state"]>().toEqualTypeOf<{ n: number }>();
// @ts-expect-error the context of createVars has no vars
type _NoVars = CreateVarsContextOf<typeof withVars>["vars"];

// A helper that takes the context of an actor, called from its actions.
const helped = actor({
  createState: (_c, input: number) => ({ total: input }),
  actions: {
    add: (c, by: number) => addTo(c, by),
    both: async (c) => [await read(c), c.name] as const,
  },
});
function addTo(c: ActorContextOf<typeof helped>, by: number): number {
  c.state.total += by;
  return c.state.total;
}
// One whose type does not depend on the actor.
function read(c: Context<{ state: { total: number } }>) {
  return Promise.resolve(c.state.total);
}
// One called beside a createVars.
const cycleFree = actor({
  state: { a: 1 },
  createVars: () => ({ v: "x" }),
  onWake: (c) => greet(c),
  actions: { hi: (c) => greet(c) },
});
function greet(c: Context<{ state: { a: number }; vars: { v: string } }>): void {
  c.log.info({ msg: c.vars.v, a: c.state.a });
}

// Schemas.
declare const tuple: StandardSchemaV1<unknown, [string, number?]>;
declare const start: StandardSchemaV1<string, { at: Date }>;
const checked = actor({
  inputSchema: start,
  createState: (_c, input) => ({ at: input.at }),
  actions: {
    book: (c, who: string, seats?: number) => `${who}${seats}${c.state.at.getTime()}`,
    group: { inner: (_c, who: string) => who },
  },
  actionInputSchemas: { book: tuple, group: {} },
});
actor({
  actions: { group: { inner: (_c, who: string, _n?: number) => who } },
  actionInputSchemas: { "group.inner": tuple },
});
actor({
  actions: { book: (_c, who: string) => who },
  // @ts-expect-error no action has this name
  actionInputSchemas: { bok: tuple },
});

// Handles.
const registry = setup({ use: { withVars, helped, checked, cycleFree }, storage: ":memory:" });
const client = registry.client();
const handle = client.helped.getOrCreate("k", { createWithInput: 5 });
expectTypeOf(handle.add).toEqualTypeOf<(by: number) => Promise<number>>();
expectTypeOf(handle.both()).resolves.toEqualTypeOf<readonly [number, string]>();
expectTypeOf(handle.resolve()).resolves.toEqualTypeOf<string>();
expectTypeOf(handle.action({ name: "add", args: [1] })).resolves.toEqualTypeOf<number>();
const bookings = client.checked.getForId("id");
expectTypeOf(bookings.book).toEqualTypeOf<(who: string, seats?: number) => Promise<string>>();
expectTypeOf(bookings.group.inner("x")).resolves.toEqualTypeOf<string>();
expectTypeOf(
  bookings.action({ name: "group.inner", args: ["x"] }),
).resolves.toEqualTypeOf<string>();
expectTypeOf(client.get("helped", "k").add(1)).resolves.toEqualTypeOf<number>();
// What creates an actor passes what the schema takes, not what it makes.
client.checked.getOrCreate(["a", "b"], { createWithInput: "2026-01-01" });
expectTypeOf(client.checked.create("k", { input: "2026-01-01" })).resolves.toHaveProperty("book");

// @ts-expect-error an argument of a wrong type
handle.add("1");
// @ts-expect-error an action that does not exist
handle.ad(1);
// @ts-expect-error an action that does not exist, by name
handle.action({ name: "ad", args: [] });
// @ts-expect-error arguments of a wrong type, by name
handle.action({ name: "add", args: ["x"] });
// @ts-expect-error an actor that does not exist
client.nobody;
// @ts-expect-error the input is required
client.helped.getOrCreate("k");
// @ts-expect-error the input has another type
client.helped.create("k", { input: "five" });
// @ts-expect-error this actor takes no input
client.withVars.create("k", { input: 42 });
// @ts-expect-error a key of numbers
client.withVars.get(5);
client.withVars.getOrCreate();
// @ts-expect-error a name that clients have
setup({ use: { getOrCreate: withVars } });
// @ts-expect-error an unknown option
setup({ use: { withVars }, storag: "x" });

// Calls between actors.
const caller = actor({
  state: { n: 0 },
  actions: {
    relay: async (c, by: number) => {
      const total = await c.client<typeof registry>().helped.get("k").add(by);
      expectTypeOf(total).toEqualTypeOf<number>();
      return total;
    },
  },
});
expectTypeOf(
  setup({ use: { caller } }).client().caller.get().relay(1),
).resolves.toEqualTypeOf<number>();

// Inside an actor of the same registry, without a cycle.
const self = actor({
  state: { n: 0 },
  actions: {
    poke: async (c): Promise<number> => {
      const other = c.client<typeof own>().self.getOrCreate("other");
      expectTypeOf(other.count()).resolves.toEqualTypeOf<number>();
      return other.count();
    },
    count: (c) => c.state.n,
  },
});
const own = setup({ use: { self } });

// Internal actions are no part of handles.
const quiet = actor({
  state: { n: 0 },
  actions: { read: (c) => c.state.n },
  internalActions: { tick: (c, by: number) => (c.state.n += by) },
});
const quietHandle = setup({ use: { quiet } }).client().quiet.getOrCreate();
// @ts-expect-error only schedules and the actor itself
quietHandle.tick(1);

// onBeforeActionResponse keeps the type of what it passes on.
actor({
  state: { n: 0 },
  onBeforeActionResponse: (c, name, args, output) => {
    expectTypeOf(name).toEqualTypeOf<string>();
    expectTypeOf(args).toEqualTypeOf<unknown[]>();
    c.state.n += 1;
    return output;
  },
});

// Loggers.
declare const pinoShaped: Record<
  "trace" | "debug" | "info" | "warn" | "error" | "fatal",
  { (fields: object, message?: string, ...more: unknown[]): void; (message: string): void }
> & { level: string };
setup({ use: { quiet }, logging: { baseLogger: pinoShaped } });
// @ts-expect-error it lacks most levels
setup({ use: { quiet }, logging: { baseLogger: { info: () => {} } } });

// Names of RivetKit.
expectTypeOf<typeof quiet>().toMatchTypeOf<BaseActorDefinition>();
expectTypeOf(setup({ use: { quiet } }).client()).toMatchTypeOf<Pick<AnyClient, "dispose">>();
expectTypeOf<RegistryConfig>().toHaveProperty("use");
expectTypeOf<ActorOptionsInput["durability"]>().toEqualTypeOf<"reply" | "interval" | undefined>();
expectTypeOf(new RivetError("g", "c", "m")).toMatchTypeOf<RivetErrorLike>();

// The clock.
actor({
  run: async (c) => {
    expectTypeOf(c.now).toEqualTypeOf<number>();
    expectTypeOf(c.clock.now()).toEqualTypeOf<number>();
    expectTypeOf(await c.clock.sleep(5, { signal: c.abortSignal })).toEqualTypeOf<void>();
    // @ts-expect-error a time is a number
    await c.clock.sleep("5 s");
    // @ts-expect-error no such option
    await c.clock.sleep(5, { until: 6 });
  },
});
