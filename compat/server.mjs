// A program that serves actors to the clients of the tests: `node server.mjs [TOKEN]`, which prints
// the URL where it listens and that within a server of its own, and serves until its input ends.
//
// Control, which is no part of the gateway: `POST /control/sleep/<id>` puts an actor to sleep
// and answers when it does.

import { once } from "node:events";
import { createServer } from "node:http";

import { actor, event, queue, setup, UserError } from "../dist/index.js";

const POLL_MS = 5;

/** A Standard Schema of what `check` accepts. */
const schema = (check) => ({
  "~standard": {
    version: 1,
    vendor: "compat",
    validate: (value) =>
      check(value) ? { value } : { issues: [{ message: `not ${JSON.stringify(value)}` }] },
  },
});

const room = actor({
  createState: (_c, input) => ({ input, wakes: 0, said: 0, gone: [] }),
  createVars: () => ({ asked: null, waiting: [] }),
  events: {
    said: event(),
    secret: event({ canSubscribe: (_c) => false }),
  },
  queues: { jobs: queue(), slow: queue(), private: queue({ canPublish: () => false }) },
  options: { actionTimeout: 5_000 },
  onBeforeConnect(c, params) {
    if (params?.name === "eve") {
      throw new UserError("not you", { code: "unwanted", metadata: { name: "eve" } });
    }
    if (params?.name === "mallory") throw new Error("a secret");
    c.vars.asked = {
      url: c.request.url,
      method: c.request.method,
      agent: c.request.headers.get("user-agent"),
    };
  },
  createConnState: (_c, params) => ({ name: params?.name ?? "nobody", calls: 0 }),
  onConnect: (_c, conn) => conn.send("said", `welcome ${conn.state.name}`),
  onDisconnect: (c, conn) => {
    if (conn.state.name !== "nobody") c.state.gone.push(conn.state.name);
  },
  onWake: (c) => {
    c.state.wakes += 1;
  },
  async run(c) {
    for await (const message of c.queue.iter({ names: ["jobs"], completable: true })) {
      c.broadcast("said", message.body);
      await message.complete({ did: message.body });
    }
  },
  async onRequest(c, request) {
    const { pathname, search } = new URL(request.url);
    if (pathname === "/fail") throw new UserError("no page", { code: "no_page" });
    if (pathname === "/stream") return new Response(request.body, { status: 202 });
    const body = await request.text();
    return Response.json(
      {
        method: request.method,
        pathname,
        search,
        body,
        name: c.conn.state.name,
        own: own(request),
      },
      { headers: { "x-key": encodeURIComponent(JSON.stringify(c.key)) } },
    );
  },
  onWebSocket(c, socket) {
    socket.send(`hello ${c.conn.state.name} ${c.request.url.replace(/^https?:..[^/]*/, "")}`);
    socket.addEventListener("message", ({ data }) => {
      if (data === "close") socket.close(4001, "as you wish");
      else socket.send(data);
    });
  },
  actions: {
    echo: (_c, ...args) => args,
    same: (_c, value) => value,
    nothing: () => {},
    kind: (_c, value) => Object.prototype.toString.call(value),
    input: (c) => c.state.input,
    key: (c) => c.key,
    wakes: (c) => c.state.wakes,
    asked: (c) => c.vars.asked,
    gone: (c) => c.state.gone,
    say(c, ...args) {
      c.state.said += 1;
      c.broadcast("said", ...args);
      return c.state.said;
    },
    whisper: (c, ...args) => c.conn.send("said", ...args),
    tell(c) {
      c.broadcast("secret", 1);
    },
    who(c) {
      c.conn.state.calls += 1;
      return { ...c.conn.state, params: c.conn.params, id: c.conn.id };
    },
    names: (c) => [...c.conns.values()].map((conn) => conn.state.name).sort(),
    /** Is answered once another call releases it. */
    wait: (c, value) => new Promise((resolve) => c.vars.waiting.push(() => resolve(value))),
    /** Waits for a call that waits, and releases it unless `answers` is false. */
    async release(c, { answers = true } = {}) {
      while (c.vars.waiting.length === 0) await c.clock.sleep(1);
      const release = c.vars.waiting.shift();
      if (answers) release();
    },
    never: () => new Promise(() => {}),
    large: (_c, size) => "x".repeat(size),
    refuse() {
      throw new UserError("full", { code: "full", metadata: { left: 0, big: 7n } });
    },
    refusePlainly() {
      throw new UserError("no reason");
    },
    fail() {
      throw new Error("a secret");
    },
    kick: (c, reason) => c.conn.disconnect(reason),
    rest: (c) => c.sleep(),
    destroy: (c) => c.destroy(),
    group: { add: (_c, a, b) => a + b },
  },
});

const typed = actor({
  connParamsSchema: schema((value) => typeof value?.age === "number"),
  createConnState: (_c, params) => params,
  actionInputSchemas: { grow: schema((args) => typeof args[0] === "number") },
  actions: {
    age: (c) => c.conn.state.age,
    grow: (c, by) => c.conn.state.age + by,
  },
});

/** Keeps raw sockets over a sleep. */
const kept = actor({
  state: { heard: 0 },
  options: { canHibernateWebSocket: true },
  onWebSocket(c, socket) {
    socket.addEventListener("message", ({ data }) => {
      c.state.heard += 1;
      socket.send(`${c.state.heard} ${data}`);
    });
  },
  actions: { heard: (c) => c.state.heard },
});

/** Headers of the client that an author has no business with. */
const own = (request) =>
  [...request.headers.keys()].filter((name) => name.startsWith("x-rivet-internal-"));

const registry = setup({
  use: { room, typed, kept },
  storage: ":memory:",
  logging: { level: "silent" },
});

async function sleep(id) {
  const actor = registry.actor(id);
  await actor.sleep();
  while ((await actor.info()).awake) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

const application = {
  async fetch(request) {
    const [, control, step, id] = new URL(request.url).pathname.split("/");
    if (control !== "control" || step !== "sleep") return new Response("none", { status: 404 });
    await sleep(id);
    return new Response("asleep");
  },
};

const [token] = process.argv.slice(2);
const { url } = await registry.listen({ port: 0, application, token });

const server = createServer((_request, response) => response.end("the author's"));
registry.attach(server, { basePath: "/api/rivet", token });
await once(server.listen(0, "127.0.0.1"), "listening");

process.stdout.write(`${url} http://127.0.0.1:${server.address().port}/api/rivet\n`);
process.stdin.resume().on("end", () => {
  server.close();
  server.closeAllConnections();
  registry.shutdown({ deadline: 1_000 });
});
