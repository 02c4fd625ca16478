// An actor with connections, for several tests.

import { actor, event } from "../../dist/index.js";

/** An actor that notes what happens to its connections. */
export const room = (notes = [], more = {}) =>
  actor({
    state: { said: 0 },
    events: { said: event() },
    createConnState: (_c, params) => ({ name: params?.name, count: 0 }),
    onWake: () => void notes.push("onWake"),
    onBeforeConnect: (_c, params) => void notes.push(`onBeforeConnect ${params?.name}`),
    onConnect: (_c, conn) => void notes.push(`onConnect ${conn.state.name}`),
    onDisconnect: (_c, conn) => void notes.push(`onDisconnect ${conn.state.name}`),
    ...more,
    actions: {
      say(c, ...args) {
        c.state.said += 1;
        c.broadcast("said", ...args);
        return c.state.said;
      },
      names: (c) => [...c.conns.values()].map((conn) => conn.state.name),
      count(c, by) {
        c.conn.state.count += by;
        return c.conn.state.count;
      },
      me: (c) => ({
        id: c.conn?.id,
        params: c.conn?.params,
        caller: c.caller,
        hibernates: c.conn?.isHibernatable,
      }),
      sendTo: (c, id, ...args) => c.conns.get(id)?.send("said", ...args),
      async kick(c) {
        for (const conn of c.conns.values()) await conn.disconnect("out");
        return c.conns.size;
      },
      ...more.actions,
    },
  });

/** What a connection hears, as lists of arguments. */
export function heard(conn, name = "said") {
  const all = [];
  conn.on(name, (...args) => all.push(args));
  return all;
}
