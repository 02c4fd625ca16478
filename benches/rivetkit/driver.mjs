// Measures one runtime with the published client: `node driver.mjs RUNTIME SECONDS ROUNDS`, in the folder
// where RivetKit is installed. Prints what it found as one line of JSON; its progress goes to stderr.

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "rivetkit/client";

const { args, cwd, env, port, seconds, rounds, actors } = JSON.parse(process.argv[2]);

const note = (text) => process.stderr.write(`${text}\n`);
const median = (samples) => [...samples].sort((a, b) => a - b)[Math.floor(samples.length / 2)];

async function reachable(child) {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the application ended with ${child.exitCode}`);
    const socket = connectTcp(port, "127.0.0.1");
    const open = await new Promise((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    if (open) return;
    await pause(5);
  }
}

/** An engine may listen before it knows what runs its actors, and refuses calls until then. */
async function firstAnswer(client, child) {
  for (;;) {
    try {
      return await client.counter.getOrCreate(["first"]).increment();
    } catch (error) {
      if (error.code !== "no_runner_config_configured" || child.exitCode !== null) throw error;
      await pause(20);
    }
  }
}

/** Starts the application on a folder, and measures until its first answer. */
async function started(folder) {
  const began = performance.now();
  const child = spawn(process.execPath, [...args, path.join(cwd, "app.mjs")], {
    cwd,
    stdio: ["ignore", 2, 2],
    env: { ...env, RIVETKIT_STORAGE_PATH: folder },
  });
  await reachable(child);
  const client = createClient({
    endpoint: `http://127.0.0.1:${port}`,
    disableMetadataLookup: true,
  });
  await firstAnswer(client, child);
  const ms = performance.now() - began;
  return { child, client, ms, folder };
}

/** The application and all that it started, whoever their parent is by now. */
function processes({ child, folder }) {
  const own = [child.pid];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === child.pid) continue;
    try {
      const given = readFileSync(`/proc/${pid}/environ`, "latin1");
      if (given.includes(`RIVETKIT_STORAGE_PATH=${folder}`)) own.push(pid);
    } catch {
      // It has ended.
    }
  }
  return own;
}

/** Memory that no other process shares with them, in bytes. */
function memory(app) {
  let kib = 0;
  for (const pid of processes(app)) {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "latin1");
    kib += Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0);
  }
  return kib * 1024;
}

async function stopped(app) {
  await Promise.race([app.client.dispose(), pause(500)]);
  for (const pid of processes(app)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
  await pause(500);
}

/** How many calls a second, each round; `count` at a time. */
async function rates(count, call) {
  const samples = [];
  for (let round = 0; round <= rounds; round++) {
    let calls = 0;
    const began = performance.now();
    const end = began + seconds * 1000;
    const lane = async (lane) => {
      while (performance.now() < end) {
        await call(lane, calls);
        calls += 1;
      }
    };
    await Promise.all(Array.from({ length: count }, (_, i) => lane(i)));
    // The first round warms up.
    if (round > 0) samples.push(calls / ((performance.now() - began) / 1000));
  }
  return samples;
}

/** How many milliseconds each call takes, in rounds of some. */
async function times(each, call) {
  const samples = [];
  for (let round = 0; round < rounds; round++) {
    const round_ = [];
    for (let i = 0; i < each; i++) {
      const began = performance.now();
      await call(round * each + i);
      round_.push(performance.now() - began);
    }
    samples.push(median(round_));
  }
  return samples;
}

async function connected(handle) {
  const connection = handle.connect();
  await new Promise((resolve) => {
    if (connection.isConnected) return resolve();
    connection.onOpen(resolve);
  });
  return connection;
}

async function measured() {
  const results = {};
  const folders = [];
  const folder = () =>
    folders[folders.push(mkdtempSync(path.join(tmpdir(), "rivetkit-bench-"))) - 1];
  const starts = [];
  let app;
  try {
    for (let round = 0; round < rounds; round++) {
      if (app !== undefined) await stopped(app);
      app = await started(folder());
      starts.push(app.ms);
    }
    results.start = starts;
    const { client } = app;
    const counter = (key) => client.counter.getOrCreate([key]);
    const first = await connected(counter("first"));

    note("calls over a connection");
    results.connection = await rates(1, () => first.increment());
    note("calls over HTTP");
    const handle = counter("first");
    results.http = await rates(1, () => handle.increment());
    note("durable saves");
    results.durable = await rates(1, () => first.incrementDurable());
    note("SQL");
    const table = await connected(client.table.getOrCreate(["sql"]));
    results.insert = await rates(1, () => table.insert("hello world"));

    note("64 in flight over 100 actors");
    const many = [];
    for (let i = 0; i < 100; i++) many.push(await connected(counter(`many ${i}`)));
    results.crowd = await rates(64, (_, call) => many[call % many.length].increment());
    await Promise.all(many.map((connection) => connection.dispose()));

    note("events");
    const listeners = [];
    let heard = 0;
    for (let i = 0; i < 50; i++) {
      const connection = await connected(counter("hall"));
      connection.on("told", () => {
        heard += 1;
      });
      listeners.push(connection);
    }
    await listeners[0].emit(1);
    await pause(1_000);
    results.events = [];
    for (let round = 0; round < rounds; round++) {
      const before = heard;
      const sent = 20 * listeners.length;
      const began = performance.now();
      await listeners[0].emit(20);
      let last = began;
      // Until all are heard, or none comes any more.
      for (let seen = before; heard < before + sent; ) {
        await pause(1);
        if (heard !== seen) [seen, last] = [heard, performance.now()];
        else if (performance.now() - last > 5_000) break;
      }
      if (heard < before + sent) note(`${before + sent - heard} of ${sent} events were not heard`);
      results.events.push((heard - before) / ((last - began) / 1000));
    }
    await Promise.all(listeners.map((connection) => connection.dispose()));

    note("new actors");
    results.create = await times(20, (i) => counter(`new ${i}`).increment());
    note("sleeping actors");
    const sleepers = Array.from({ length: 10 * rounds }, (_, i) => counter(`new ${i}`));
    for (const sleeper of sleepers) await sleeper.goSleep();
    await pause(4_000);
    results.wake = await times(10, (i) => sleepers[i].increment());

    note("memory");
    // Beside each other: how much one needs counts, not how long they take.
    const before = memory(app);
    for (let i = 0; i < actors; i += 10) {
      await Promise.all(Array.from({ length: 10 }, (_, j) => counter(`idle ${i + j}`).increment()));
    }
    await pause(3_000);
    results.memory = [(memory(app) - before) / actors];
  } finally {
    if (app !== undefined) await stopped(app);
    for (const made of folders) rmSync(made, { recursive: true, force: true });
  }
  return results;
}

process.stdout.write(`${JSON.stringify(await measured())}\n`);
process.exit(0);
