// A server in a process of its own: actors behind a gateway, a bare `ws` echo and a bare `node:http`
// server. Tells its parent where they are, and its resident memory when it is asked for that.

import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { actor, event, setup } from "greenroom";
import { WebSocketServer } from "ws";

const told = actor({
  state: { count: 0 },
  events: { news: event() },
  options: { durability: "interval", sleepTimeout: 3_600_000 },
  actions: {
    add: (c, by) => {
      c.state.count += by;
      return c.state.count;
    },
    shout: (c, times, text) => {
      for (let i = 0; i < times; i++) c.broadcast("news", text);
    },
    rest: (c) => c.sleep(),
  },
});

const registry = setup({ use: { told }, storage: process.argv[2] });
const { port } = await registry.listen({ port: 0 });

const listening = (server) =>
  new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(server.address().port));
  });

const bare = createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    const { args } = JSON.parse(Buffer.concat(pieces));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ output: args[0] }));
  });
});
const echoes = createServer();
const bareSockets = new WebSocketServer({ server: echoes, perMessageDeflate: false });
bareSockets.on("connection", (socket) => {
  socket._socket.setNoDelay(true);
  socket.on("message", (data, isBinary) => {
    const text = data.toString();
    // Of the row that broadcasts: how often, and what.
    const [, times, shouted] = /^!(\d+) (.*)$/s.exec(text) ?? [];
    if (times === undefined) return socket.send(data, { binary: isBinary });
    for (let i = 0; i < Number(times); i++) {
      for (const each of bareSockets.clients) each.send(shouted);
    }
  });
});

process.send({ port, http: await listening(bare), echo: await listening(echoes) });
process.on("message", async (asked) => {
  if (asked === "memory") {
    for (let i = 0; i < 5; i++) {
      global.gc();
      await pause(100);
    }
    process.send({ rss: process.memoryUsage().rss });
  }
});
process.on("disconnect", () => process.exit(0));
