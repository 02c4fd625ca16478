// Vite's development server with the actors in it, as the documentation says.
import assert from "node:assert/strict";
import { once } from "node:events";
import { it } from "node:test";

import { createClient } from "greenroom/client";
import { WebSocket } from "ws";
import { packagesFor } from "./support/packages.mjs";
import { get, projectIn } from "./support/project.mjs";
import { sample } from "./support/samples.mjs";

const TOOLS = { tsx: "4.23.15", vite: "8.4.0" };

it("Vite's server serves its pages, its sockets, and the actors with their connections", async (t) => {
  const packages = await packagesFor(t, "tools", TOOLS);
  if (packages === undefined) return;
  const { start, edit } = projectIn(t, packages, {
    "package.json": JSON.stringify({ private: true, type: "module" }),
    "actors.ts": sample("frameworks.md", "actors.ts"),
    "vite.config.ts": sample("frameworks.md", "vite.config.ts"),
    "index.html": "<title>the page</title>",
  });
  const vite = `${packages}/node_modules/vite/bin/vite.js`;
  // Colours come between the words, and Vite has them on CI.
  const plain = { NO_COLOR: "1", FORCE_COLOR: "0" };
  const server = start([vite, "--port", "0", "--clearScreen", "false"], plain);
  const port = await server.says(/localhost:(\d+)/);
  const endpoint = `http://localhost:${port}/api/rivet`;

  assert.match(await get(port), /<title>the page<\/title>/);
  const token = /const wsToken = "([^"]+)"/.exec(await get(port, "@vite/client"))[1];
  const socket = new WebSocket(`ws://localhost:${port}/?token=${token}`, "vite-hmr");
  const [hello] = await once(socket, "message");
  assert.equal(JSON.parse(hello).type, "connected");
  socket.close();

  const client = createClient({ endpoint, webSocket: WebSocket });
  t.after(() => client.dispose());
  const handle = client.counter.getOrCreate("a");
  assert.equal(await handle.add(1), 1);
  const conn = handle.connect();
  const heard = [];
  conn.on("counted", (count) => heard.push(count));
  assert.equal(await conn.add(2), 3);
  assert.deepEqual(heard, [3]);

  const save = edit("actors.ts", "c.state.count += by;", "c.state.count += 10 * by;");
  await server.says(/(server restarted)/, 1, save);
  assert.equal(await handle.add(1), 13);
});
