// Raw requests and sockets, and sockets that outlive a sleep.

import { actor, event, UserError } from "rivetkit";

import { note } from "./notes.mjs";

const encoder = new TextEncoder();

const site = actor({
  state: { asked: 0 },
  createConnState: (_c, params) => ({ name: params?.name ?? "nobody" }),
  onBeforeConnect(_c, params) {
    if (params?.name === "eve") throw new UserError("not you", { code: "unwanted" });
  },
  async onRequest(c, request) {
    c.state.asked += 1;
    const { pathname, search } = new URL(request.url);
    if (pathname === "/fail") throw new UserError("no page", { code: "no_page" });
    if (pathname === "/crash") throw new Error("a secret");
    if (pathname === "/empty") return new Response(null, { status: 204 });
    if (pathname === "/redirect")
      return new Response(null, { status: 302, headers: { location: "/x" } });
    if (pathname === "/bytes") return new Response(new Uint8Array([0, 255, 1]));
    if (pathname === "/large") return new Response("x".repeat(3_000_000));
    if (pathname === "/echo") return new Response(await request.arrayBuffer());
    if (pathname === "/stream") {
      const parts = ["one ", "two ", "three"];
      return new Response(
        new ReadableStream({
          async pull(controller) {
            await new Promise((resolve) => setTimeout(resolve, 20));
            if (parts.length > 0) controller.enqueue(encoder.encode(parts.shift()));
            else controller.close();
          },
        }),
        { headers: { "content-type": "text/plain" } },
      );
    }
    return Response.json(
      {
        method: request.method,
        pathname,
        search,
        body: await request.text(),
        header: request.headers.get("x-own"),
        name: c.conn.state.name,
        same: c.request.url === request.url,
      },
      { status: 201, headers: { "x-key": c.key[0] } },
    );
  },
  onWebSocket(c, socket) {
    const { pathname, search } = new URL(c.request.url);
    socket.send(`hello ${c.conn.state.name} ${pathname}${search}`);
    socket.addEventListener("message", ({ data }) => {
      if (data === "close") socket.close(4001, "as you wish");
      else if (data === "count") socket.send(String(c.conns.size));
      else socket.send(data);
    });
    socket.addEventListener("close", ({ code }) => note(c, `closed ${code}`));
  },
  actions: { asked: (c) => c.state.asked },
});

const deaf = actor({ actions: { one: () => 1 } });

/** Keeps its raw sockets over a sleep, in which its variables are lost. */
const keeper = actor({
  state: { heard: 0 },
  options: { canHibernateWebSocket: true, sleepTimeout: 60_000 },
  onWake: (c) => note(c, "onWake"),
  onSleep: (c) => note(c, "onSleep"),
  onWebSocket(c, socket) {
    note(c, "onWebSocket");
    socket.addEventListener("message", ({ data }) => {
      c.state.heard += 1;
      socket.send(`${c.state.heard} ${data}`);
    });
    socket.addEventListener("close", () => note(c, "closed"));
  },
  actions: { rest: (c) => c.sleep(), nothing: () => {} },
});

/** Keeps connections over a sleep, with their states and subscriptions. */
const club = actor({
  events: { said: event() },
  options: { canHibernateWebSocket: true, sleepTimeout: 60_000 },
  createConnState: (_c, params) => ({ name: params?.name ?? "nobody", calls: 0 }),
  onWake: (c) => note(c, "onWake"),
  onSleep: (c) => note(c, "onSleep"),
  onConnect: (c, conn) => {
    if (conn.state.name !== "nobody") note(c, `onConnect ${conn.state.name}`);
  },
  onDisconnect: (c, conn) => {
    if (conn.state.name !== "nobody") note(c, `onDisconnect ${conn.state.name}`);
  },
  actions: {
    who(c) {
      c.conn.state.calls += 1;
      return { ...c.conn.state, id: c.conn.id, hibernatable: c.conn.isHibernatable };
    },
    say: (c, text) => c.broadcast("said", text),
    rest: (c) => c.sleep(),
    nothing: () => {},
  },
});

export const actors = { site, deaf, keeper, club };
