// A server is killed while sockets are open, asleep and at work, round after round.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { after, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { createClient } from "greenroom/client";
import { WebSocket } from "ws";
import { chance } from "./support/chance.mjs";

const ROUNDS = 3;
const NAMES = ["ada", "bob", "cleo", "dan"];
const ROOMS = ["a", "b"];
/** Longer than an actor stays awake with nothing to do, so some messages wake it. */
const LONGEST_PAUSE_MS = 60;
/** A client that found no server waits up to a few seconds before it looks again. */
const PATIENCE_MS = 30_000;
const SEED = Date.now() % 1_000_000;
const PROGRAM = fileURLToPath(new URL("./support/sockets-server.mjs", import.meta.url));

async function eventually(holds, what) {
  const end = Date.now() + PATIENCE_MS;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`still not so: ${what}`);
    await pause(5);
  }
}

describe("a server with open sockets that is killed with SIGKILL", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "greenroom-sockets-"));
  const random = chance(SEED);
  let server;
  let isOver = false;
  let talkers = [];

  async function start(port) {
    const child = spawn(process.execPath, [PROGRAM, folder, String(port)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [url] = await once(createInterface(child.stdout), "line");
    server = { child, url, port: Number(new URL(url).port) };
  }

  async function kill() {
    const gone = once(server.child, "exit");
    server.child.kill("SIGKILL");
    await gone;
  }

  after(async () => {
    isOver = true;
    await Promise.all(talkers.map(({ conn }) => conn.dispose()));
    if (server) await kill();
    rmSync(folder, { recursive: true });
  });

  it(`loses nothing that it acknowledged, and its clients come back, each once (seed ${SEED})`, async () => {
    await start(0);
    const client = createClient({ endpoint: server.url, webSocket: WebSocket });
    talkers = NAMES.map((name, index) => {
      const room = ROOMS[index % ROOMS.length];
      const conn = client.room.getOrCreate(room).connect({ name });
      const talker = { name, room, conn, acknowledged: 0, heard: [], shouts: [] };
      conn.on("said", (who, n) => who === name && talker.heard.push(n));
      conn.on("shout", (text) => talker.shouts.push(text));
      return talker;
    });
    /** Says one message after the other, each until it is acknowledged. */
    async function talk(talker) {
      for (let n = 1; !isOver; n += 1) {
        for (;;) {
          try {
            await talker.conn.say(n);
            break;
          } catch (error) {
            // A message that was acknowledged is missing, or one came twice.
            if (isOver || error.group === "user") throw error;
          }
        }
        talker.acknowledged = n;
        await pause(random() * LONGEST_PAUSE_MS);
      }
    }
    const talks = Promise.all(talkers.map(talk));

    for (let round = 0; round < ROUNDS; round += 1) {
      const before = talkers.map(({ acknowledged }) => acknowledged);
      await Promise.race([
        talks,
        eventually(
          () => talkers.every(({ acknowledged }, index) => acknowledged > before[index] + 1),
          "every client has been heard again",
        ),
      ]);
      await pause(random() * LONGEST_PAUSE_MS);
      await kill();
      await start(server.port);
    }
    const before = talkers.map(({ acknowledged }) => acknowledged);
    await eventually(
      () => talkers.every(({ acknowledged }, index) => acknowledged > before[index]),
      "every client is back",
    );
    isOver = true;
    await talks;

    for (const room of ROOMS) {
      const here = talkers.filter((talker) => talker.room === room);
      const handle = client.room.get(room);
      const stored = await handle.last();
      for (const { name, acknowledged } of here) assert.equal(stored[name], acknowledged, name);
      // Again after a sleep: what is stored of connections is as exact.
      for (const text of ["once", "again"]) {
        assert.deepEqual(await handle.names(), here.map(({ name }) => name).sort());
        await handle.shout(text);
        await pause(LONGEST_PAUSE_MS * 2);
      }
      for (const { shouts, name } of here) assert.deepEqual(shouts, ["once", "again"], name);
    }
    for (const { heard, name } of talkers) {
      const inOrder = heard.every((n, index) => index === 0 || n >= heard[index - 1]);
      assert.ok(inOrder, `${name} heard ${heard}`);
    }

    // Those who went while no server was there are gone.
    await kill();
    await Promise.all(talkers.slice(2).map(({ conn }) => conn.dispose()));
    await start(server.port);
    const [first, second] = talkers;
    for (const talker of [first, second]) await talker.conn.say(talker.acknowledged);
    for (const talker of [first, second]) {
      assert.deepEqual(await client.room.get(talker.room).names(), [talker.name]);
    }
  });
});
