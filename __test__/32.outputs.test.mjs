// c.fetch, and calls to other actors, as outputs: they leave when what was changed before is durable.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { inFolder, inMemory, newFolder } from "./support/registry.mjs";

/** A server that answers with what it got, and says when it did. */
const requests = [];
let server;
let url;

before(async () => {
  server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    requests.push({ method: request.method, body });
    response.setHeader("x-method", request.method).end(body);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${server.address().port}/`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const program = (folder, method) => `
  import { actor, setup } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
  const it = actor({
    state: { n: 0, map: new Map() },
    actions: {
      read: (c) => [c.state.n, c.state.map.size],
      plain: async (c, url) => {
        c.state.n += 1;
        await c.fetch(url, { method: "POST", body: String(c.state.n) });
        process.kill(process.pid, "SIGKILL");
      },
      unwatched: async (c, url) => {
        const { map } = c.state;
        await c.flush();
        await new Promise((resolve) => setTimeout(resolve, 5));
        map.set("later", 1);
        await c.fetch(url, { method: "POST", body: String(map.size) });
        process.kill(process.pid, "SIGKILL");
      },
    },
  });
  const registry = setup({ use: { it }, storage: ${JSON.stringify(folder)} });
  const handle = registry.client().it.getOrCreate("k");
  console.log(JSON.stringify(await handle.${method}(${JSON.stringify(url)}) ?? null));
  await registry.shutdown();
`;

async function run(folder, method) {
  const child = spawn(process.execPath, ["--input-type=module", "-e", program(folder, method)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (chunk) => {
    said += chunk;
  });
  const [, signal] = await once(child, "close");
  return { signal, said: said === "" ? undefined : JSON.parse(said) };
}

describe("c.fetch", () => {
  for (const [method, stored] of [
    ["plain", [1, 0]],
    ["unwatched", [0, 1]],
  ]) {
    it(`leaves when what was changed before is durable (${method})`, async () => {
      const folder = await newFolder();
      requests.length = 0;

      const { signal } = await run(folder, method);

      assert.equal(signal, "SIGKILL");
      assert.deepEqual(requests, [{ method: "POST", body: "1" }]);
      assert.deepEqual((await run(folder, "read")).said, stored);
    });
  }

  const fetcher = actor({
    state: { n: 0 },
    createVars: async (c) => ({ started: await c.fetch(url).then((r) => r.status) }),
    actions: {
      started: (c) => c.vars.started,
      get: async (c) => (await c.fetch(url)).headers.get("x-method"),
      post: async (c, how) => {
        c.state.n += 1;
        const init = { method: "POST", body: "first" };
        const answer = how === "request" ? c.fetch(new Request(url, init)) : c.fetch(url, init);
        init.body = "changed";
        return (await answer).text();
      },
      aborted: async (c) => {
        c.state.n += 1;
        return c.fetch(url, { signal: AbortSignal.abort(new Error("enough")) });
      },
      wrong: (c) => {
        c.state.n += 1;
        return c.fetch("no url");
      },
    },
  });

  it("is the global one where nothing has to wait, and sends what it was given", async () => {
    const handle = inMemory({ fetcher }).client().fetcher.getOrCreate("k");

    assert.equal(await handle.started(), 200);
    assert.equal(await handle.get(), "GET");
    assert.equal(await handle.post(), "first");
    assert.equal(await handle.post("request"), "first");
  });

  it("ends with its signal and with its own errors", async () => {
    const handle = inFolder(await newFolder(), { fetcher })
      .client()
      .fetcher.getOrCreate("k");
    requests.length = 0;

    await assert.rejects(handle.aborted(), (error) => error.cause.message === "enough");
    await assert.rejects(handle.wrong(), (error) => error.cause instanceof TypeError);

    assert.deepEqual(requests, [{ method: "GET", body: "" }]);
  });
});
