// Actors behind Express: the pages are the app's, and what is below /api/rivet are the actors', calls
// and connections alike.
//
//     npm run example -- express         shows it and ends
//     npm run example -- express 3000    serves until it is ended

import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import express from "express";
import { actor, event, setup } from "greenroom";
import { createClient } from "greenroom/client";
import { WebSocket } from "ws";

const page = actor({
  state: { visits: 0 },
  events: { visited: event<number>() },
  actions: {
    visit(c) {
      c.state.visits += 1;
      c.broadcast("visited", c.state.visits);
      return c.state.visits;
    },
    visits: (c) => c.state.visits,
  },
});

const registry = setup({ use: { page }, storage: ":memory:" });

const app = express();
app.get("/", async (_request, response) => {
  // Within the process: no HTTP on the way to the actor.
  const visits = await registry.client().page.getOrCreate("home").visit();
  response.send(`<p>You are visitor ${visits}.</p>`);
});

const [port] = process.argv.slice(2);
const server = app.listen(Number(port ?? 0), "127.0.0.1");
registry.attach(server, { basePath: "/api/rivet" });
await once(server, "listening");
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
  const home = client.page.getOrCreate("home").connect();
  const heard: number[] = [];
  home.on("visited", (visits) => heard.push(visits));
  // What was sent before this is answered stands by then: the subscription, too.
  assert.equal(await home.visits(), 0);

  const response = await fetch(url);
  console.log(await response.text());
  console.log(`${await home.visits()} visit, as the actor says; ${heard} heard of`);
  assert.deepEqual(heard, [1]);

  assert.equal((await fetch(`${url}/nowhere`)).status, 404);
  await client.dispose();
}
