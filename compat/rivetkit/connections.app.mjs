// Connections, their params and state, events, and who may have them.

import { actor, event, queue, UserError } from "rivetkit";

const room = actor({
  state: { joined: [], left: [] },
  events: { said: event(), secret: event({ canSubscribe: (c) => c.conn.state.name === "ada" }) },
  onBeforeConnect(c, params) {
    if (params?.name === "eve")
      throw new UserError("not you", { code: "unwanted", metadata: { name: "eve" } });
    if (params?.name === "mallory") throw new Error("a secret");
    if (typeof c.request.url !== "string") throw new Error("no request");
  },
  createConnState: (_c, params) => ({ name: params?.name ?? "nobody", calls: 0 }),
  onConnect(c, conn) {
    c.state.joined.push(conn.state.name);
    conn.send("said", `welcome ${conn.state.name}`);
  },
  onDisconnect(c, conn) {
    c.state.left.push([conn.state.name, c.conns.has(conn.id)]);
  },
  actions: {
    who(c) {
      c.conn.state.calls += 1;
      return { ...c.conn.state, params: c.conn.params ?? null, id: c.conn.id };
    },
    names: (c) => [...c.conns.values()].map((conn) => conn.state.name).sort(),
    joined: (c) => c.state.joined,
    left: (c) => c.state.left,
    say(c, ...args) {
      c.broadcast("said", ...args);
      return "said";
    },
    secret: (c, text) => c.broadcast("secret", text),
    whisper: (c, ...args) => c.conn.send("said", ...args),
    tell(c, name, text) {
      for (const conn of c.conns.values()) if (conn.state.name === name) conn.send("said", text);
    },
    many(c, count) {
      for (let index = 0; index < count; index += 1) c.broadcast("said", index);
      return count;
    },
    kick: (c, reason) => c.conn.disconnect(reason),
    kickOther: (c, name) =>
      Promise.all(
        [...c.conns.values()]
          .filter((conn) => conn.state.name === name)
          .map((conn) => conn.disconnect()),
      ),
  },
});

/** Decides nothing in time. */
const hesitant = actor({
  onBeforeConnect: () => new Promise(() => {}),
  options: { onBeforeConnectTimeout: 300 },
  actions: { nothing: () => {} },
});

const seat = actor({
  connState: { list: [] },
  actions: {
    push: (c, value) => c.conn.state.list.push(value),
    list: (c) => c.conn.state.list,
  },
});

const numbers = {
  "~standard": {
    version: 1,
    vendor: "compat",
    validate: (value) =>
      typeof value === "number" ? { value } : { issues: [{ message: "no number" }] },
  },
};

const guarded = actor({
  connParamsSchema: {
    "~standard": {
      version: 1,
      vendor: "compat",
      validate: (value) =>
        typeof value?.age === "number" ? { value } : { issues: [{ message: "no age" }] },
    },
  },
  createConnState: (_c, params) => params,
  events: { counted: event({ schema: numbers }) },
  queues: {
    open: queue({ message: numbers }),
    shut: queue({ canPublish: () => false }),
    ada: queue({ canPublish: (c) => c.conn.state.age === 36 }),
  },
  actions: {
    age: (c) => c.conn.state.age,
    count: (c, n) => c.broadcast("counted", n),
  },
});

export const actors = { room, hesitant, seat, guarded };
