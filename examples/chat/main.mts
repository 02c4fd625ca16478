// A chat in the browser, on one process: pages and actors from one port.
//
//     npm run demo:chat [-- PORT [FOLDER]]
//
// Open the page twice and talk. The room sleeps after three seconds of silence while the sockets stay
// open; kill the process and start it again, and nothing that was acknowledged is lost.

import { cpSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { setup } from "greenroom";
import { room } from "./room.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const [port = "3000", folder = path.join(here, "data")] = process.argv.slice(2);

// A page loads the client as it is: its modules lie beside the page's own.
const pages = path.join(here, "public");
const client = path.dirname(createRequire(import.meta.url).resolve("greenroom/package.json"));
mkdirSync(pages, { recursive: true });
cpSync(path.resolve("examples/chat/public"), pages, { recursive: true });
cpSync(path.join(client, "dist/esm"), path.join(pages, "greenroom"), { recursive: true });

export const registry = setup({ use: { room }, storage: folder });
registry.drainOnSignals();
const { url } = await registry.listen({ port: Number(port), publicDir: pages });
console.log(`the chat is at ${url}/`);
