import type { StandardSchemaV1 } from "@standard-schema/spec";
import { expectTypeOf } from "expect-type";
import {
  type ActionContextOf,
  type ActorConn,
  type ActorConnStatus,
  type ActorContextOf,
  actor,
  type Conn,
  type ConnContextOf,
  type ConnOf,
  type Context,
  event,
  type InferEventArgs,
  type RivetError,
  setup,
  type UniversalWebSocket,
} from "greenroom";

interface Params {
  token: string;
}

declare const text: StandardSchemaV1<string | number, string>;
declare const credentials: StandardSchemaV1<{ token: string }, { user: number }>;

// A state made from parameters and a context that is inferred.
const room = actor({
  state: { log: [] as string[] },
  events: {
    said: event<{ by: string; text: string }>(),
    moved: event<[x: number, y: number]>(),
    list: event<string[]>(),
    empty: event<void>(),
    checked: event({ schema: text }),
    bare: text,
    plain: { schema: text, canSubscribe: (c: { conn: unknown }) => c.conn !== undefined },
    secret: event<string>({ canSubscribe: (c) => c.conn.params.token === "s" }),
    any: event(),
  },
  onBeforeConnect: (c, params: Params) => {
    expectTypeOf(params).toEqualTypeOf<Params>();
    expectTypeOf(c.request).toEqualTypeOf<Request | undefined>();
    // @ts-expect-error nobody is connected yet
    c.conn;
  },
  createConnState: (c, params: Params) => ({ user: params.token, at: c.now, items: [c.key] }),
  onConnect: (c, conn) => {
    expectTypeOf(conn.params).toEqualTypeOf<Params>();
    expectTypeOf(conn.state).toEqualTypeOf<{ user: string; at: number; items: string[][] }>();
    expectTypeOf(c.conn).toEqualTypeOf(conn);
    conn.send("moved", 1, 2);
    // @ts-expect-error no such event
    conn.send("typo", 1);
    // @ts-expect-error a wrong payload
    conn.send("said", 12);
  },
  onDisconnect: (c, conn) =>
    void expectTypeOf(c.conns.get(conn.id)).toEqualTypeOf<typeof conn | undefined>(),
  onWebSocket: (c, socket) => {
    expectTypeOf(socket).toEqualTypeOf<UniversalWebSocket>();
    expectTypeOf(c.conn.state.user).toEqualTypeOf<string>();
    socket.addEventListener("message", ({ data, rivetMessageIndex }) => {
      expectTypeOf(data).toEqualTypeOf<string | ArrayBuffer>();
      expectTypeOf(rivetMessageIndex).toEqualTypeOf<number>();
    });
    socket.onclose = ({ code, wasClean }) => {
      expectTypeOf(code).toEqualTypeOf<number>();
      expectTypeOf(wasClean).toEqualTypeOf<boolean>();
    };
    socket.send(new Uint8Array());
    // @ts-expect-error neither text nor bytes
    socket.send({ a: 1 });
    // @ts-expect-error no such event
    socket.addEventListener("messages", () => {});
  },
  run: async (c) => {
    c.broadcast("said", { by: "", text: "" });
    c.broadcast("list", ["a", "b"]);
    c.broadcast("empty");
    c.broadcast("checked", 1);
    c.broadcast("bare", "a");
    c.broadcast("any", 1, "two");
    // @ts-expect-error no such event
    c.broadcast("typo");
    // @ts-expect-error an argument is missing
    c.broadcast("moved", 1);
    // @ts-expect-error a list is one argument
    c.broadcast("list", "a", "b");
    // @ts-expect-error an event without a payload
    c.broadcast("empty", 1);
    // @ts-expect-error `run` belongs to no client
    c.conn;
    for (const [id, conn] of c.conns) {
      expectTypeOf(id).toEqualTypeOf<string>();
      expectTypeOf(conn.state.user).toEqualTypeOf<string>();
      expectTypeOf(conn.disconnect("bye")).toEqualTypeOf<Promise<void>>();
    }
    // @ts-expect-error the actor decides who is connected
    c.conns.delete("x");
  },
  onBeforeActionResponse: (c, _name, _args, output) => {
    expectTypeOf(c.conn?.state.user).toEqualTypeOf<string | undefined>();
    return output;
  },
  actions: {
    me: (c) => {
      // @ts-expect-error it may have been called without a connection
      c.conn.id;
      if (c.conn !== undefined) c.conn.state = { user: "", at: 0, items: [] };
      // @ts-expect-error a wrong type
      if (c.conn !== undefined) c.conn.state.at = "now";
      // @ts-expect-error a misspelt member
      c.conn?.stat;
      return c.conn?.params.token;
    },
    onOpen: () => 1,
  },
});

expectTypeOf<InferEventArgs<[a: number, b?: string]>>().toEqualTypeOf<[a: number, b?: string]>();
expectTypeOf<InferEventArgs<string | number>>().toEqualTypeOf<[payload: string | number]>();
expectTypeOf<InferEventArgs<unknown>>().toEqualTypeOf<unknown[]>();
expectTypeOf<ConnOf<typeof room>["params"]>().toEqualTypeOf<Params>();
expectTypeOf<ActionContextOf<typeof room>["conn"]>().toEqualTypeOf<
  ConnOf<typeof room> | undefined
>();
expectTypeOf<ConnContextOf<typeof room>["conn"]>().toEqualTypeOf<ConnOf<typeof room>>();
expectTypeOf<ActorContextOf<typeof room>["conns"]>().toEqualTypeOf<
  ReadonlyMap<string, ConnOf<typeof room>>
>();

// What a schema of parameters makes is what the actor sees; a client passes what it takes.
const checked = actor({
  connParamsSchema: credentials,
  connState: { seen: 0 },
  onConnect: (c, conn) => {
    expectTypeOf(conn.params).toEqualTypeOf<{ user: number }>();
    expectTypeOf(c.conn.state).toEqualTypeOf<{ seen: number }>();
  },
  actions: { go: (c) => expectTypeOf(c.conn?.params.user).toEqualTypeOf<number | undefined>() },
});

// Types that are named.
const named = actor({
  types: {} as { connParams: { a: number }; connState: { b: string } },
  connState: { b: "" },
  actions: {
    go: (c) => {
      expectTypeOf(c.conn?.params).toEqualTypeOf<{ a: number } | undefined>();
      expectTypeOf(c.conn?.state).toEqualTypeOf<{ b: string } | undefined>();
    },
  },
});

// An actor that says nothing of connections has them all the same.
const silent = actor({
  actions: {
    go: (c) => {
      expectTypeOf(c.conns).toEqualTypeOf<
        ReadonlyMap<string, Conn<undefined, undefined, Record<never, never>>>
      >();
      // @ts-expect-error it declares no events
      c.broadcast("any");
    },
  },
});

// A helper that the actor itself calls.
type Helped = Context<{
  connState: { n: number };
  params: { a: string };
  events: { ping: typeof text };
}>;
const help = (c: Helped): number => {
  c.broadcast("ping", 1);
  // @ts-expect-error no such event
  c.broadcast("pong", 1);
  return [...c.conns.values()].reduce((sum, conn) => sum + conn.state.n + conn.params.a.length, 0);
};
actor({
  events: { ping: text },
  createConnState: (_c, params: { a: string }) => ({ n: params.a.length }),
  onConnect: (c) => void help(c),
  actions: { sum: (c) => help(c) },
});

// As its clients see it.
const registry = setup({ use: { room, checked, named, silent } });
const client = registry.client();
const handle = client.room.getOrCreate("a");
const conn = handle.connect({ token: "t" });
expectTypeOf(conn).toEqualTypeOf<ActorConn<typeof room>>();
// @ts-expect-error the actor needs parameters
handle.connect();
// @ts-expect-error of another shape
handle.connect({ tokn: "t" });
client.room.getOrCreate("a", { params: { token: "t" } });
client.room.get("a", { getParams: async () => ({ token: "t" }) });
// @ts-expect-error of another shape
client.room.getOrCreate("a", { params: { token: 1 } });
client.checked.getOrCreate("a").connect({ token: "t" });
client.silent.getOrCreate("a").connect();
// @ts-expect-error the actor takes none
client.silent.getOrCreate("a").connect({ anything: 1 });
expectTypeOf(conn.me()).toEqualTypeOf<Promise<string | undefined>>();
expectTypeOf(conn.connStatus).toEqualTypeOf<ActorConnStatus>();
expectTypeOf(conn.ready).toEqualTypeOf<Promise<void>>();
// The member comes before the action of its name.
expectTypeOf(conn.onOpen(() => {})).toEqualTypeOf<() => void>();
expectTypeOf(conn.action({ name: "onOpen", args: [] })).toEqualTypeOf<Promise<number>>();
conn.on("said", (payload) => expectTypeOf(payload).toEqualTypeOf<{ by: string; text: string }>());
conn.once("moved", (x, y) => expectTypeOf([x, y]).toEqualTypeOf<number[]>());
conn.on("checked", (payload) => expectTypeOf(payload).toEqualTypeOf<string>());
conn.on("any", (...args) => expectTypeOf(args).toEqualTypeOf<unknown[]>());
// @ts-expect-error no such event
conn.on("typo", () => {});
conn.onError((error) => expectTypeOf(error).toEqualTypeOf<RivetError>());
