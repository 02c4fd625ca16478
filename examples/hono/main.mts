// Actors behind Hono: the routes are the app's, and what is below /api/rivet are the actors', calls
// and connections alike.
//
//     npm run example -- hono         shows it and ends
//     npm run example -- hono 3000    serves until it is ended

import assert from "node:assert/strict";
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { actor, event, setup } from "greenroom";
import { createClient } from "greenroom/client";
import { Hono } from "hono";
import { WebSocket } from "ws";

const poll = actor({
  state: { votes: {} as Record<string, number> },
  events: { voted: event<Record<string, number>>() },
  actions: {
    vote(c, choice: string) {
      c.state.votes[choice] = (c.state.votes[choice] ?? 0) + 1;
      c.broadcast("voted", c.state.votes);
      return c.state.votes;
    },
    votes: (c) => c.state.votes,
  },
});

const registry = setup({ use: { poll }, storage: ":memory:" });

const app = new Hono();
app.post("/polls/:name/:choice", async (c) => {
  const { name, choice } = c.req.param();
  return c.json(await registry.client().poll.getOrCreate(name).vote(choice));
});

const [port] = process.argv.slice(2);
// Without `createServer` among its options this is a server of node:http.
const server = serve({
  fetch: app.fetch,
  port: Number(port ?? 0),
  hostname: "127.0.0.1",
}) as Server;
registry.attach(server, { basePath: "/api/rivet" });
if (!server.listening) await once(server, "listening");
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

if (port !== undefined) console.log(`listening at ${url}`);
else {
  await show();
  server.close();
  server.closeAllConnections();
  await registry.shutdown();
}

/** What a page, or a program elsewhere, does. */
async function show(): Promise<void> {
  const client = createClient<typeof registry>({
    endpoint: `${url}/api/rivet`,
    webSocket: WebSocket,
  });
  const lunch = client.poll.getOrCreate("lunch").connect();
  const heard: Record<string, number>[] = [];
  lunch.on("voted", (votes) => heard.push(votes));
  // What was sent before this is answered stands by then: the subscription, too.
  assert.deepEqual(await lunch.votes(), {});

  const response = await fetch(`${url}/polls/lunch/soup`, { method: "POST" });
  console.log("a route of the app:", await response.json());
  console.log("the connection:", await lunch.vote("bread"));
  console.log("heard of:", heard.length, "votes");
  assert.deepEqual(heard, [{ soup: 1 }, { soup: 1, bread: 1 }]);

  assert.equal((await fetch(`${url}/nowhere`)).status, 404);
  await client.dispose();
}
