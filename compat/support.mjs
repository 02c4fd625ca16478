// What the tests share: the server as a process of its own, clients, and a wire that can be cut.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { createClient } from "rivetkit/client";
import { within } from "./waits.mjs";

export { ENCODINGS, hears, plain, told, within } from "./waits.mjs";

/** The server runs under the Node.js that the repository is tested with, the clients need a newer one. */
const NODE = process.env.GREENROOM_NODE ?? process.execPath;

/** Starts the server, which wants a token where one is given; `close` ends it. */
export async function startServer(...token) {
  const program = fileURLToPath(new URL("server.mjs", import.meta.url));
  const child = spawn(NODE, [program, ...token], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exit = once(child, "exit");
  const line = once(createInterface(child.stdout), "line");
  const [said] = await Promise.race([line, exit.then(([code]) => [`exit code ${code}`])]);
  const [url, attached] = said.split(" ");
  if (!url.startsWith("http://")) throw new Error(`the server did not start: ${said}`);
  const clients = new Set();
  return {
    url,
    /** Where the same actors are within a server of the author's. */
    attached,
    /** A client, disposed with the server. `options` as of `createClient`. */
    client(encoding, options = {}) {
      const client = createClient({ endpoint: url, encoding, ...options });
      clients.add(client);
      return client;
    },
    /** Resolves when the actor sleeps. */
    async sleep(id) {
      const response = await fetch(`${url}/control/sleep/${id}`, { method: "POST" });
      if (!response.ok) throw new Error(await response.text());
    },
    async close() {
      try {
        const disposed = Promise.all([...clients].map((client) => client.dispose()));
        await within(disposed, "the clients are disposed of");
        child.stdin.end();
        const [code, signal] = await within(exit, "the server ends");
        if (code !== 0) throw new Error(`the server ended with ${code ?? signal}`);
      } finally {
        child.kill("SIGKILL");
      }
    },
  };
}

/** A wire to `url` that can be cut: everything that goes over it is gone then, and new calls pass. */
export async function cuttable(url) {
  const { hostname, port } = new URL(url);
  const open = new Set();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      open.add(from);
      from.on("error", () => {});
      from.on("close", () => {
        open.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut,
    close() {
      cut();
      server.close();
    },
  };
}
