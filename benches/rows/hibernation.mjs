// Sockets whose actors sleep: what one costs, and how long its next message takes.

import { inFlight, latencies, pause } from "../measure.mjs";
import { Connection, server } from "../remote.mjs";
import { atMost } from "../table.mjs";

const CROWD = 10_000;
const FEW = 10;
const SLEEPERS = 100;
/** Until those that were told to sleep do. */
const ASLEEP_MS = 500;
const REPETITIONS = 3;

export default async function* hibernation(run) {
  yield await firstMessage(run);
  yield await memory(run);
}

/** A message on each of some sockets in turn, to its answer. */
async function firstMessage(run) {
  const { port, end } = await server(run.folder());
  const connections = [];
  for (let i = 0; i < run.scaled(SLEEPERS); i++) {
    connections.push(await Connection.to(port, `sleeper${i}`));
  }
  const each = () => latencies(connections.length, (i) => connections[i].call("add", 1));
  const [samples, cpus, awake] = [[], [], []];
  for (let i = 0; i < run.repetitions; i++) {
    await inFlight(1, connections.length, (k) => connections[k].call("rest"));
    await pause(ASLEEP_MS);
    const { p50, cpu } = await each();
    samples.push(p50);
    cpus.push(cpu);
    awake.push((await each()).p50);
  }
  for (const connection of connections) connection.close();
  await end();
  return {
    work: "first message on a socket whose actor sleeps, to its answer",
    unit: "ms",
    samples,
    cpus,
    reference: { what: "one that is awake", unit: "ms", samples: awake },
    target: atMost("ms", 1),
  };
}

/**
 * The resident memory of a process in which `open` sockets of sleeping actors are open, after it had
 * `count` of them. Buffers of the kernel are no part of that.
 */
async function resident(run, count, open) {
  const { port, memory, end } = await server(run.folder());
  const connections = [];
  await inFlight(8, count, async (i) => {
    const connection = await Connection.to(port, `sleeper${i}`);
    await connection.call("rest");
    if (i < open) connections.push(connection);
    else connection.close();
  });
  await pause(ASLEEP_MS);
  const bytes = await memory();
  for (const connection of connections) connection.close();
  await end();
  return bytes;
}

async function memory(run) {
  const count = run.scaled(CROWD);
  const [samples, references] = [[], []];
  for (let i = 0; i < (run.quick ? 1 : REPETITIONS); i++) {
    const none = await resident(run, count, FEW);
    references.push(none);
    samples.push(((await resident(run, count, count)) - none) / (count - FEW));
  }
  const what = `the process with ${FEW} sockets`;
  return {
    work: "10,000 open sockets of actors that sleep, each",
    unit: "bytes",
    samples,
    reference: { what, unit: "bytes", samples: references },
    target: atMost("bytes", 6 * 1024, "6 KiB"),
  };
}
