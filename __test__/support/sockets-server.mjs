// The server that the crash test of sockets kills: sockets-server.mjs FOLDER PORT.
//
// It refuses a message that does not follow on what is stored, so whoever says the same again
// until it is acknowledged finds out whether anything acknowledged is missing.

import { actor, event, setup, UserError } from "greenroom";

const [folder, port] = process.argv.slice(2);

const room = actor({
  state: { last: {} },
  events: { said: event(), shout: event() },
  // A call without a connection has one of its own, without parameters.
  createConnState: (_c, params) => ({ name: params?.name ?? "", said: 0 }),
  options: { sleepTimeout: 20 },
  actions: {
    /** Takes the message `n` of a client: the next one, or again the last one. */
    say(c, n) {
      const { name } = c.conn.state;
      const last = c.state.last[name] ?? 0;
      if (n !== last && n !== last + 1) throw new UserError(`${n} comes behind ${last}`);
      c.state.last[name] = n;
      c.conn.state.said += 1;
      c.broadcast("said", name, n);
      return c.conn.state.said;
    },
    last: (c) => c.state.last,
    names: (c) =>
      [...c.conns.values()]
        .map((conn) => conn.state.name)
        .filter((name) => name !== "")
        .sort(),
    shout: (c, text) => c.broadcast("shout", text),
  },
});

const registry = setup({ use: { room }, storage: folder });
const listener = await registry.listen({ port: Number(port) });
console.log(listener.url);
