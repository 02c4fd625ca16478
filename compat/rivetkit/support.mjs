// What the tests of RivetKit's server half share: its application as a process of its own, on the
// runtime that is asked for, and clients of it.
//
// 1. Nothing here knows which runtime serves: RivetKit's own settings choose the port and folder.
// 2. `npm run compare:rivetkit` alone sets the environment: `RIVETKIT_APPS` is a copy of this folder beside another installation of `rivetkit`, whose runtime
//    serves then; `RIVETKIT_URL` is an application that serves every area already.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";

import { createClient } from "rivetkit/client";
import { freePort } from "../../scripts/lib/ports.mjs";
import { within } from "../waits.mjs";

export { ENCODINGS, hears, plain, told, within } from "../waits.mjs";

const APPS = process.env.RIVETKIT_APPS ?? fileURLToPath(new URL(".", import.meta.url));
/** A second installation comes with an engine, which is slow to start. */
const START_MS = process.env.RIVETKIT_APPS ? 120_000 : 20_000;
const LIMIT_MS = 20_000;
const END_MS = 20_000;
const POLL_MS = 20;

export const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A folder of its own, removed by `remove`. */
export async function newFolder() {
  const folder = await mkdtemp(path.join(tmpdir(), "greenroom-compat-"));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Resolves with what `ask` gives once that is truthy; rejects, saying what is not so, after a while. */
export async function until(ask, what, limitMs = LIMIT_MS) {
  const end = Date.now() + limitMs;
  let last;
  while (Date.now() < end) {
    try {
      const given = await ask();
      if (given) return given;
      last = undefined;
    } catch (error) {
      last = error;
    }
    await delay(POLL_MS);
  }
  throw new Error(`still not so: ${what}`, { cause: last });
}

/** Whether an application that serves actors listens there. */
async function serves(url) {
  const response = await fetch(`${url}/actors/names?namespace=default`);
  return response.ok && Object.keys((await response.json()).names).length > 0;
}

/** The engine that a runtime started beside the application, if it did. */
async function engineOf(folder) {
  const file = path.join(folder, ".rivetkit/var/engine/runtime.json");
  return JSON.parse(await readFile(file, "utf8").catch(() => "{}")).pid;
}

async function killAndWait(pid) {
  try {
    process.kill(pid, "SIGKILL");
    while (true) {
      process.kill(pid, 0);
      await delay(POLL_MS);
    }
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

/** Starts an application on a folder. `kill` ends it as a crash does; `close` asks it to end. */
export async function startApp(areas, folder, more = {}) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(process.execPath, ["app.mjs", ...areas], {
    cwd: APPS,
    stdio: ["ignore", "inherit", "inherit"],
    env: {
      ...process.env,
      RUST_BACKTRACE: "0",
      RIVET_LOG_LEVEL: process.env.RIVET_LOG_LEVEL ?? "silent",
      RIVETKIT_RUNTIME: "native",
      RIVETKIT_STORAGE_PATH: folder,
      RIVET_RUN_ENGINE: "1",
      RIVET_RUN_ENGINE_HOST: "127.0.0.1",
      RIVET_RUN_ENGINE_PORT: String(port),
      RIVET_RUN_SERVICES: "0",
      RIVET__RUNTIME__WORKER_CPU_MAX: "64000",
      ...more,
    },
  });
  const exit = once(child, "exit");
  const ended = exit.then(([code, signal]) => {
    throw new Error(`the application ended with ${code ?? signal}`);
  });
  ended.catch(() => {});
  const kill = async () => {
    const engine = await engineOf(folder);
    child.kill("SIGKILL");
    await exit;
    if (engine) await killAndWait(engine);
  };
  try {
    await Promise.race([until(() => serves(url), "the application serves", START_MS), ended]);
  } catch (error) {
    await kill();
    throw error;
  }
  return {
    url,
    kill,
    async close() {
      const engine = await engineOf(folder);
      child.kill("SIGTERM");
      try {
        // RivetKit raises the signal again when it is done.
        return await within(exit, "the application ends", END_MS);
      } finally {
        await kill();
        if (engine) await killAndWait(engine);
      }
    },
  };
}

/** Clients of an application, and the end of them. */
export function clientsOf(url) {
  const clients = new Set();
  return {
    /** `options` as of `createClient`. */
    client(encoding = "bare", options = {}) {
      const client = createClient({ endpoint: url(), encoding, ...options });
      clients.add(client);
      return client;
    },
    async dispose() {
      const all = Promise.all([...clients].map((client) => client.dispose()));
      await within(all, "the clients are disposed of");
    },
  };
}

/**
 * The application of some areas for the tests of a file, from `before` to `after`; as `{areas, env}`,
 * with more in its environment, which the application of every area has too.
 */
export function appOf(...given) {
  const { areas, env } = typeof given[0] === "object" ? given[0] : { areas: given };
  let app;
  let place;
  let witness;
  const clients = clientsOf(() => app.url);
  before(async () => {
    if (process.env.RIVETKIT_URL) {
      app = { url: process.env.RIVETKIT_URL, close: async () => {} };
    } else {
      place = await newFolder();
      app = await startApp(areas, place.folder, env);
    }
    witness = clients.client().witness.getOrCreate(["witness"]);
  });
  after(async () => {
    try {
      await clients.dispose();
    } finally {
      await app?.close();
      await place?.remove();
    }
  });
  const done = (key) => witness.done(key);
  const listed = async (id) => {
    const url = new URL("/actors", app.url);
    url.search = new URLSearchParams({ actor_ids: id, namespace: "default" });
    const response = await fetch(url);
    return (await response.json()).actors[0];
  };
  return {
    client: clients.client,
    get url() {
      return app.url;
    },
    /** The answer of an actor's own HTTP, by its id. */
    async ask(handle, route, init) {
      return fetch(`${app.url}/gateway/${await handle.resolve()}${route}`, init);
    },
    /** What the actor of a key noted. */
    done,
    /** Resolves once the actor of a key noted this, so many times. */
    noted: (key, what, times = 1) =>
      until(async () => count(await done(key), what) >= times, `${times} times ${what}`),
    /** How often the actor of a key noted this. */
    times: async (key, what) => count(await done(key), what),
    /** Resolves once the host has no such actor. */
    gone: (id) =>
      until(async () => {
        const row = await listed(id);
        return row === undefined || row.destroy_ts !== null;
      }, "the actor is gone"),
    /** The state of an actor as its host lists it. */
    listed,
  };
}

const count = (list, what) => list.filter((each) => each === what).length;

/** A key that no test of any run has taken. */
export const fresh = (name) => [name, crypto.randomUUID()];
