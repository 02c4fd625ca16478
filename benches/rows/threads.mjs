// Calls from another JavaScript thread, which shares the folder.

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { setup } from "greenroom";
import { ACTORS, awake, reply } from "../actors.mjs";
import { rates } from "../measure.mjs";
import { atLeast } from "../table.mjs";

/** A worker that runs a number of calls, or of plain messages back and forth. */
function started(storage) {
  const worker = new Worker(new URL("../programs/caller.mjs", import.meta.url), {
    workerData: { storage, actors: ACTORS },
  });
  // An error of the worker is thrown by `once`.
  const answer = () => once(worker, "message");
  return {
    ready: answer(),
    run(order, transferred) {
      const done = answer();
      worker.postMessage(order, transferred);
      return done;
    },
    stop: () => worker.terminate(),
  };
}

export default async function* threads(run) {
  const storage = run.folder();
  const registry = setup({ use: { reply }, storage, threads: "shared" });
  // Whoever asks first runs the actors: this thread.
  await awake(registry.client(), "reply");
  const caller = started(storage);
  await caller.ready;
  const echo = new MessageChannel();
  echo.port1.on("message", (message) => echo.port1.postMessage(message));
  await caller.run({ port: echo.port2 }, [echo.port2]);
  for (const [count, operations, target] of [
    [1, 5_000, undefined],
    [64, 40_000, atLeast(60_000, 18)],
  ]) {
    const {
      rates: samples,
      cpus,
      references,
    } = await rates(run, {
      operations,
      body: (n) => caller.run({ calls: n, count }),
      reference: { operations: operations / 2, body: (n) => caller.run({ echoes: n, count }) },
    });
    yield {
      work: `call from another JavaScript thread, ${count} in flight`,
      unit: "rate",
      samples,
      cpus,
      reference: { what: "message to a thread and back", unit: "rate", samples: references },
      target,
    };
  }
  await caller.run({ end: true });
  await caller.stop();
  echo.port1.close();
  await registry.shutdown();
}
