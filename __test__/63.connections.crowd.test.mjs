// Crowds of clients: hooks that throw for some of them, and more of them than may be there. What is
// counted afterwards is exact.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { actor, UserError } from "../dist/index.js";
import { inMemory, until } from "./support/registry.mjs";
import { openSocket } from "./support/socket.mjs";

const CROWD = 40;

const notes = { made: 0, connected: 0, disconnected: 0 };

const picky = actor({
  state: {},
  createConnState: () => {
    notes.made += 1;
    if (notes.made % 2 === 0) throw new UserError("not every second one", { code: "second" });
    return { number: notes.made };
  },
  onConnect: () => {
    notes.connected += 1;
  },
  onDisconnect: () => {
    notes.disconnected += 1;
  },
  options: { createConnStateTimeout: 30_000, onConnectTimeout: 30_000 },
  actions: { here: () => true },
});

const small = actor({
  state: {},
  options: { maxConnections: 10, createConnStateTimeout: 30_000, onConnectTimeout: 30_000 },
  actions: { here: () => true },
});

describe("a crowd of clients", () => {
  let registry;
  let url;

  before(async () => {
    registry = inMemory({ picky, small });
    ({ url } = await registry.listen({ port: 0 }));
  });
  after(() => registry.shutdown());

  /** Opens so many sockets at once: those who were accepted, and how the others were closed. */
  async function flood(name, count) {
    const sockets = await Promise.all(
      Array.from({ length: count }, () => openSocket(url, name, ["a"])),
    );
    const accepted = [];
    const refused = [];
    for (const socket of sockets) {
      const [tag] = await socket.next();
      if (tag === "Init") accepted.push(socket);
      // What it is told first says why; the close says it again.
      else refused.push(await socket.closed);
    }
    return { accepted, refused };
  }

  /** How many connections the actors of a type have, as the gateway counts them. */
  async function counted(name) {
    const page = await (await fetch(new URL("/metrics", url))).text();
    const line = `rivetkit_actor_connections_active{actor_name="${name}"} `;
    return Number(
      page
        .split("\n")
        .find((text) => text.startsWith(line))
        .slice(line.length),
    );
  }

  it("half of which a hook refuses leaves the other half", async () => {
    const { accepted, refused } = await flood("picky", CROWD);

    assert.deepEqual([accepted.length, refused.length], [CROWD / 2, CROWD / 2]);
    for (const { code, reason } of refused) {
      assert.equal(code, 1011);
      assert.match(reason, /^user\.second(#|$)/);
    }
    assert.equal(await counted("picky"), CROWD / 2);
    assert.deepEqual([notes.connected, notes.disconnected], [CROWD / 2, 0]);
    for (const socket of accepted) {
      socket.call("here");
      assert.equal((await socket.next())[0], "ActionResponse");
    }

    for (const socket of accepted) socket.end();
    await until(async () => (await counted("picky")) === 0, "all are gone");
    // A connection is gone before its hook runs.
    await until(() => notes.disconnected >= CROWD / 2, "all have been told of");
    assert.deepEqual([notes.connected, notes.disconnected], [CROWD / 2, CROWD / 2]);
  });

  it("larger than an actor takes is let in up to that", async () => {
    const { accepted, refused } = await flood("small", CROWD);

    assert.deepEqual([accepted.length, refused.length], [10, CROWD - 10]);
    for (const { code, reason } of refused) {
      assert.equal(code, 1011);
      assert.match(reason, /^connection\.too_many(#|$)/);
    }
    assert.equal(await counted("small"), 10);

    accepted[0].end();
    await until(async () => (await counted("small")) === 9, "one has gone");
    const next = await openSocket(url, "small", ["a"]);
    assert.equal((await next.next())[0], "Init");
    assert.equal(await counted("small"), 10);
    for (const socket of [...accepted, next]) socket.end();
    await until(async () => (await counted("small")) === 0, "all are gone");
  });
});
