// greenroom for a harness that measures several systems at the same work, each through an adapter:
//
//   { name, versions(), start({ dir }) } with start() resolving to { pids(), labels, sqlKey(key),
//   call(key, action, ...args), connect(key), fires(keys), sleepAll(keys), wakes(), stop() }
//
// The server is a process of its own. Clients are those of greenroom/client over `ws`, as other adapters
// have it.

import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "greenroom/client";
import { WebSocket } from "ws";

const program = fileURLToPath(new URL("./app.mjs", import.meta.url));
const manifest = new URL("../../package.json", import.meta.url);

/** Until actors that were told to sleep do, in milliseconds. */
const ASLEEP_MS = 1_000;

class Socket extends WebSocket {
  constructor(url, protocols) {
    super(url, protocols, { perMessageDeflate: false });
  }
}

async function start({ dir }) {
  const child = fork(program, [dir]);
  const [url] = await once(child, "message");
  const client = createClient({ endpoint: url, webSocket: Socket });
  const handles = new Map();
  const handle = (key) => {
    if (!handles.has(key)) {
      const actors = key.startsWith("sql") ? client.table : client.counter;
      handles.set(key, actors.getOrCreate([key]));
    }
    return handles.get(key);
  };
  const warm = () => handle("warm");
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  let before = 0;
  return {
    labels: ["app"],
    pids: () => [child.pid],
    sqlKey: (key) => key,
    extraSql: [
      ["insert_loop_nosync", "insertInTurn", "hello world"],
      ["select_loop_inplace", "selectInTurn", 200],
    ],
    call: (key, action, ...args) => handle(key)[action](...args),
    callRaw: (key, action, ...args) => post(agent, url, key, action, args),
    async connect(key) {
      const connection = handle(key).connect();
      await connection.ready;
      return {
        call: (action, ...args) => connection[action](...args),
        onMsg: (heard) => connection.on("msg", heard),
        close: () => connection.dispose(),
      };
    },
    fires: () => warm().takeFires(),
    async sleepAll(keys) {
      before = await warm().wakeCount();
      for (const key of keys) await handle(key).goSleep();
      await pause(ASLEEP_MS);
    },
    wakes: async () => (await warm().wakeCount()) - before,
    async stop() {
      await client.dispose();
      agent.destroy();
      child.disconnect();
      await once(child, "exit");
    },
  };
}

/** An action over HTTP by nothing but `node:http`. */
async function post(agent, url, key, action, args) {
  const query = `rvt-namespace=default&rvt-method=getOrCreate&rvt-runner=default&rvt-key=${key}`;
  const body = JSON.stringify({ args });
  const headers = { "content-type": "application/json", "content-length": body.length };
  const at = `${url}/gateway/counter/action/${action}?${query}`;
  const asked = request(at, { agent, method: "POST", headers });
  asked.end(body);
  const [response] = await once(asked, "response");
  const pieces = [];
  for await (const piece of response) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces)).output;
}

export default {
  name: "greenroom",
  versions: () => ({ greenroom: JSON.parse(readFileSync(manifest, "utf8")).version }),
  start,
};
