// Threads that share a folder and its gateway: what one of them answers ends with it, and no
// other answers in its place.

import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it } from "node:test";
import { Worker } from "node:worker_threads";

import { actor } from "../dist/index.js";
import { actorUrl } from "./support/gateway.mjs";
import { inFolder, newFolder } from "./support/registry.mjs";

const dist = new URL("../dist/index.js", import.meta.url).href;
const counter = actor({ state: { n: 0 }, actions: { add: (c, by) => (c.state.n += by) } });

/** A thread on the folder that runs `body`, and tells what it returns. */
async function thread(folder, body) {
  const worker = new Worker(
    `
    const { parentPort } = require("node:worker_threads");
    import(${JSON.stringify(dist)}).then(async ({ actor, setup }) => {
      const endless = actor({
        actions: { here: () => true },
        onRequest: () => new Response(new ReadableStream({
          start(controller) {
            controller.enqueue(new TextEncoder().encode("first"));
          },
        })),
      });
      const registry = setup({ use: { endless }, storage: ${JSON.stringify(folder)}, threads: "shared" });
      const run = async () => { ${body} };
      parentPort.postMessage(await run().catch((error) => error.group + "/" + error.code));
      setInterval(() => {}, 1000);
    });
    `,
    { eval: true },
  );
  const [told] = await once(worker, "message");
  return { told, worker };
}

describe("a gateway that threads share", () => {
  it("breaks an answer off whose thread ends, and not those of others", async () => {
    const folder = await newFolder();
    const registry = inFolder(folder, { counter }, { threads: "shared" });
    await registry.client().counter.getOrCreate("a").add(1);
    const { url } = await registry.listen({ port: 0 });
    const { told, worker } = await thread(
      folder,
      `return registry.client().endless.getOrCreate("a").here();`,
    );
    assert.equal(told, true);
    const response = await fetch(actorUrl(url, "endless", ["a"], "request/x"));
    const reader = response.body.getReader();
    assert.equal(Buffer.from((await reader.read()).value).toString(), "first");

    await worker.terminate();

    await assert.rejects(reader.read());
    assert.equal(await registry.client().counter.getOrCreate("a").add(1), 2);
    assert.equal((await fetch(new URL("/health", url))).status, 200);
  });

  it("answers by the application of the thread that has the address", async () => {
    const folder = await newFolder();
    const registry = inFolder(folder, { counter }, { threads: "shared" });
    await registry.client().counter.getOrCreate("a").add(1);
    const application = { fetch: () => new Response("here") };
    const { url, port } = await registry.listen({ port: 0, application });
    const again = await registry.listen({ port: 0, application });
    const listen = `
      const application = { fetch: () => new Response("there") };
      const listener = await registry.listen({ port: PORT, application });
      return listener.url;
    `;

    const taken = await thread(folder, listen.replace("PORT", String(port)));
    const other = await thread(folder, listen.replace("PORT", "0"));

    assert.equal(taken.told, "gateway/address_unusable");
    const ask = async (at) => (await fetch(new URL("/page", at))).text();
    assert.deepEqual(
      [await ask(url), await ask(again.url), await ask(other.told)],
      ["here", "here", "there"],
    );
    await taken.worker.terminate();
    await other.worker.terminate();
    assert.equal(await ask(url), "here");
  });
});
