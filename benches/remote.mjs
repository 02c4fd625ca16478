// A client of actors in another process, as thin as can be, so that it takes little of the machine.

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";

const program = fileURLToPath(new URL("./programs/server.mjs", import.meta.url));

/** Starts the program that has actors in `folder`, and bare servers beside them. */
export async function server(folder) {
  const child = fork(program, [folder], { execArgv: ["--expose-gc"] });
  const [at] = await once(child, "message");
  return {
    ...at,
    /** The resident memory of the process, in bytes. */
    memory: async () => {
      child.send("memory");
      const [{ rss }] = await once(child, "message");
      return rss;
    },
    end: async () => {
      child.disconnect();
      await once(child, "exit");
    },
  };
}

/** Of which actor a URL is. */
export const query = (key) =>
  `rvt-namespace=default&rvt-method=getOrCreate&rvt-runner=default&rvt-key=${key}`;

/** A bare socket that is open. */
export const opened = async (url, protocols) => {
  const socket = new WebSocket(url, protocols, { perMessageDeflate: false });
  await once(socket, "open");
  socket._socket.setNoDelay(true);
  return socket;
};

/** A connection of the protocol, in JSON. */
export class Connection {
  #next = 0;
  #open = new Map();
  #socket;
  /** Called for each event. */
  heard = undefined;

  static async to(port, key) {
    const url = `ws://127.0.0.1:${port}/gateway/told/connect?${query(key)}`;
    const connection = new Connection();
    connection.#socket = new WebSocket(url, ["rivet", "rivet_encoding.json"], {
      perMessageDeflate: false,
    });
    const ready = new Promise((resolve, reject) => {
      connection.#socket.on("error", reject);
      connection.#socket.on("message", (data) => connection.#hear(data, resolve));
    });
    await ready;
    connection.#socket._socket.setNoDelay(true);
    return connection;
  }

  #hear(data, ready) {
    const { tag, val } = JSON.parse(data).body;
    if (tag === "Init") return ready();
    if (tag === "Event") return this.heard();
    if (tag === "Error") throw new Error(`${val.group}.${val.code}`);
    const id = Number(val.id[1]);
    this.#open.get(id)(val.output);
    this.#open.delete(id);
  }

  call(name, ...args) {
    const id = this.#next++;
    return new Promise((resolve) => {
      this.#open.set(id, resolve);
      this.#send("ActionRequest", { id: ["$BigInt", String(id)], name, args });
    });
  }

  subscribe(eventName) {
    this.#send("SubscriptionRequest", { eventName, subscribe: true });
    // Taken in order: behind its answer the subscription stands.
    return this.call("add", 0);
  }

  close() {
    this.#socket.terminate();
  }

  #send(tag, val) {
    this.#socket.send(JSON.stringify({ body: { tag, val } }));
  }
}
