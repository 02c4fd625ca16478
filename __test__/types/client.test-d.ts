import { expectTypeOf } from "expect-type";
import { actor, event, queue, setup } from "greenroom";
import { type ActorConn, createClient, type RemoteHandle } from "greenroom/client";

const room = actor({
  createState: (_c, input: { topic: string }) => ({ topic: input.topic }),
  createConnState: (_c, params: { name: string }) => ({ name: params.name }),
  events: { said: event<[who: string, text: string]>(), closed: event() },
  queues: { mails: queue<{ to: string }, number>() },
  actions: {
    say: (_c, text: string, at?: Date) => ({ text, at }),
    admin: { clear: async (_c) => 5n },
  },
});
const plain = actor({ state: 0, actions: { read: (c) => c.state } });
const registry = setup({ use: { room, plain } });

const client = createClient<typeof registry>("http://localhost:6420");
const params = { name: "ada" };

const handle = client.room.getOrCreate("a", { createWithInput: { topic: "x" }, params });
expectTypeOf(handle).toEqualTypeOf<RemoteHandle<typeof room>>();
expectTypeOf(handle.say).toEqualTypeOf<
  (text: string, at?: Date) => Promise<{ text: string; at: Date | undefined }>
>();
expectTypeOf(handle.admin.clear()).toEqualTypeOf<Promise<bigint>>();
expectTypeOf(handle.action({ name: "admin.clear", args: [] })).toEqualTypeOf<Promise<bigint>>();
expectTypeOf(handle.fetch("/x")).toEqualTypeOf<Promise<Response>>();
void handle.send("mails", { to: "b" }, { wait: true }).then((sent) => {
  expectTypeOf(sent.response).toEqualTypeOf<number | undefined>();
});

// @ts-expect-error there is no such actor
client.rooms;
// @ts-expect-error there is no such action
handle.shout;
// @ts-expect-error the input is required
client.room.getOrCreate("a");
// @ts-expect-error the input has a topic
client.room.create("a", { input: {} });
// @ts-expect-error the parameters have a name
client.room.get("a", { params: {} });
// @ts-expect-error there is no such queue
void handle.send("letters", 1);

const conn = handle.connect(params);
expectTypeOf(conn).toEqualTypeOf<ActorConn<typeof room>>();
conn.on("said", (who, text) => {
  expectTypeOf([who, text]).toEqualTypeOf<string[]>();
});
expectTypeOf(conn.say("x")).toEqualTypeOf<Promise<{ text: string; at: Date | undefined }>>();
// @ts-expect-error there is no such event
conn.on("typo", () => {});
// @ts-expect-error the parameters are required
handle.connect();
// @ts-expect-error a listener of two strings
conn.on("said", (who: number) => who);

expectTypeOf(client.plain.get().connect().read()).toEqualTypeOf<Promise<number>>();
expectTypeOf(client.get("plain", "k").read()).toEqualTypeOf<Promise<number>>();
expectTypeOf(client.getOrCreate("room", "a", { createWithInput: { topic: "x" } })).toEqualTypeOf<
  RemoteHandle<typeof room>
>();
expectTypeOf(client.create("plain")).toEqualTypeOf<Promise<RemoteHandle<typeof plain>>>();
// @ts-expect-error there is no such actor
client.get("rooms");
