// What clients in another process have of actors, beside bare servers in that process. The client is
// one process, too, and on two cores it takes as much of them as the server.

import { once } from "node:events";
import { Agent, request } from "node:http";
import { inFlight, rateRow } from "../measure.mjs";
import { Connection, opened, query, server } from "../remote.mjs";
import { atLeast, partOfReference } from "../table.mjs";

const ACTORS = 100;
const GROUP = 64;
const RECEIVERS = 100;
/** Events of one call, so that the call itself does not count. */
const SHOUTS = 20;
const TEXT = "x".repeat(100);

/** The bare echo, with messages of the same length. */
async function echo(port, count, operations) {
  const sockets = [];
  for (let i = 0; i < count; i++) sockets.push(await opened(`ws://127.0.0.1:${port}`));
  const waiting = sockets.map(() => []);
  for (const [i, socket] of sockets.entries()) {
    socket.on("message", (data) => waiting[i].shift()(JSON.parse(data)));
  }
  return {
    what: "bare `ws` echo",
    operations,
    body: (n) =>
      inFlight(count === 1 ? 1 : GROUP, n, (i) => {
        const at = i % sockets.length;
        const id = ["$BigInt", String(i)];
        const val = { id, name: "add", args: [1] };
        return new Promise((resolve) => {
          waiting[at].push(resolve);
          sockets[at].send(JSON.stringify({ body: { tag: "ActionRequest", val } }));
        });
      }),
    close: () => {
      for (const socket of sockets) socket.terminate();
    },
  };
}

function poster(port, path) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const body = JSON.stringify({ args: [1] });
  const headers = { "content-type": "application/json", "content-length": body.length };
  return async () => {
    const asked = request({ agent, host: "127.0.0.1", port, path, method: "POST", headers });
    asked.end(body);
    const [response] = await once(asked, "response");
    const pieces = [];
    for await (const piece of response) pieces.push(piece);
    if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
    return JSON.parse(Buffer.concat(pieces));
  };
}

export default async function* gateway(run) {
  const { port, http, echo: echoPort, end } = await server(run.folder());
  const connections = [];
  for (let i = 0; i < ACTORS; i++) connections.push(await Connection.to(port, `a${i}`));

  const one = await echo(echoPort, 1, 5_000);
  yield await rateRow(run, {
    work: "action over a connection, 1 in flight",
    operations: 5_000,
    body: (n) => inFlight(1, n, () => connections[0].call("add", 1)),
    reference: one,
    target: partOfReference(1 / 1.5),
  });
  one.close();
  const many = await echo(echoPort, ACTORS, 50_000);
  yield await rateRow(run, {
    work: `the same, ${GROUP} in flight over ${ACTORS} actors`,
    operations: 50_000,
    body: (n) => inFlight(GROUP, n, (i) => connections[i % ACTORS].call("add", 1)),
    reference: many,
    target: partOfReference(0.6),
  });
  many.close();

  const post = poster(port, `/gateway/told/action/add?${query("a0")}`);
  const plain = poster(http, "/");
  yield await rateRow(run, {
    work: "action over HTTP, keep-alive, 1 in flight",
    operations: 2_000,
    body: (n) => inFlight(1, n, post),
    reference: { what: "bare `node:http`", operations: 2_000, body: (n) => inFlight(1, n, plain) },
    target: partOfReference(0.5),
  });

  yield await broadcast(run, port, echoPort);
  for (const connection of connections) connection.close();
  await end();
}

/** Waits until `receivers` have heard `count` messages together, which `begin` causes. */
async function heard(receivers, count, begin) {
  const all = new Promise((resolve) => {
    let left = count;
    for (const receiver of receivers) {
      receiver.heard = () => {
        left -= 1;
        if (left === 0) resolve();
      };
    }
  });
  await begin();
  await all;
}

/** The same over bare sockets: the frame that the gateway sends, made once. */
async function bareBroadcast(port) {
  const sockets = [];
  for (let i = 0; i < RECEIVERS; i++) {
    const socket = await opened(`ws://127.0.0.1:${port}`);
    const receiver = { socket, heard: undefined };
    socket.on("message", (data) => {
      JSON.parse(data);
      receiver.heard();
    });
    sockets.push(receiver);
  }
  const frame = JSON.stringify({ body: { tag: "Event", val: { name: "news", args: [TEXT] } } });
  return {
    what: "bare `ws`, a loop",
    operations: 500_000,
    body: (n) => {
      const calls = Math.ceil(n / (RECEIVERS * SHOUTS));
      return heard(sockets, calls * RECEIVERS * SHOUTS, () => {
        for (let i = 0; i < calls; i++) sockets[0].socket.send(`!${SHOUTS} ${frame}`);
      });
    },
    close: () => {
      for (const { socket } of sockets) socket.terminate();
    },
  };
}

/** Events of 100 bytes to 100 connections of one actor, as they arrive. */
async function broadcast(run, port, echoPort) {
  const receivers = [];
  for (let i = 0; i < RECEIVERS; i++) {
    const receiver = await Connection.to(port, "all");
    await receiver.subscribe("news");
    receivers.push(receiver);
  }
  const body = (n) => {
    const calls = Math.ceil(n / (RECEIVERS * SHOUTS));
    return heard(receivers, calls * RECEIVERS * SHOUTS, () =>
      inFlight(2, calls, () => receivers[0].call("shout", SHOUTS, TEXT)),
    );
  };
  const reference = await bareBroadcast(echoPort);
  const measured = await rateRow(run, {
    work: `broadcast of 100 bytes to ${RECEIVERS} connections, messages received`,
    operations: 500_000,
    body,
    reference,
    target: atLeast(150_000),
  });
  reference.close();
  for (const receiver of receivers) receiver.close();
  return measured;
}
