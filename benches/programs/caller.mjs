// A worker thread that calls actors of another thread, as often as it is told.

import { parentPort, workerData } from "node:worker_threads";
import { setup } from "greenroom";
import { reply } from "../actors.mjs";
import { inFlight } from "../measure.mjs";

const { storage, actors } = workerData;
const registry = setup({ use: { reply }, storage, threads: "shared" });
const client = registry.client();
const handles = Array.from({ length: actors }, (_, i) => client.reply.getOrCreate(`bench-${i}`));
await Promise.all(handles.map((handle) => handle.read()));

let port;
const waiting = [];
const echoed = () =>
  new Promise((resolve) => {
    waiting.push(resolve);
    port.postMessage([]);
  });

const orders = {
  port(given) {
    port = given;
    port.on("message", () => waiting.shift()());
  },
  calls: (count, { calls }) => inFlight(count, calls, (i) => handles[i % actors].read()),
  echoes: (count, { echoes }) => inFlight(count, echoes, echoed),
  async end() {
    port.close();
    await registry.shutdown();
  },
};

parentPort.on("message", async (order) => {
  if (order.port) orders.port(order.port);
  else if (order.calls) await orders.calls(order.count, order);
  else if (order.echoes) await orders.echoes(order.count, order);
  else await orders.end();
  parentPort.postMessage("done");
});
parentPort.postMessage("ready");
