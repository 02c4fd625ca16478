// The contract's `CoreRegistry`: how it serves, and what it says of itself.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, it } from "node:test";

import { CancellationToken, CoreRegistry, NapiActorFactory } from "greenroom/native";
import { freePort } from "../scripts/lib/ports.mjs";
import { bridged } from "./support/bridge.mjs";
import { call } from "./support/gateway.mjs";
import { bytes, until } from "./support/native.mjs";

/** A type of actors with one action, which answers 7. */
const seven = (config) =>
  new NapiActorFactory({ actions: { seven: async () => Uint8Array.of(7) } }, config);

/** A registry of one type, what to serve it with, and its folder; shut down after the test. */
async function prepared(t, more = {}, config = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), "greenroom-serve-"));
  process.env.RIVETKIT_STORAGE_PATH = folder;
  const registry = new CoreRegistry();
  registry.register("counter", seven(config));
  t.after(async () => {
    await registry.shutdown();
    rmSync(folder, { recursive: true, force: true });
  });
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const settings = {
    version: 3,
    endpoint,
    token: "dev",
    namespace: "default",
    poolName: "default",
    engineBinaryPath: "/nowhere",
    startServices: true,
    serverlessBasePath: "/api/rivet",
    serverlessPackageVersion: "2.3.19",
    serverlessMaxStartPayloadBytes: 100,
    ...more,
  };
  return { registry, settings, endpoint };
}

const told = ({ status, headers, body }) => ({
  status,
  type: headers["content-type"],
  body: JSON.parse(String(body)),
});

describe("serve", () => {
  it("serves the actors at the endpoint until everything has come to rest", async (t) => {
    const { registry, settings, endpoint } = await prepared(t);
    const ready = registry.waitReady();
    let isOver = false;

    const served = registry.serve(settings).then(() => {
      isOver = true;
    });
    await ready;
    assert.equal((await call(endpoint, "counter", ["a"], "seven")).output, 7);
    const found = await (await fetch(`${endpoint}/actors?name=counter&namespace=default`)).json();
    assert.equal(found.actors.length, 1);
    assert.equal(isOver, false);

    await Promise.all([registry.shutdown(), registry.shutdown()]);
    await served;
    await assert.rejects(fetch(`${endpoint}/health`));
  });

  it("finds in its folder what an earlier registry has stored", async (t) => {
    const { registry, settings, endpoint } = await prepared(t);
    const served = registry.serve(settings);
    await registry.waitReady();
    await call(endpoint, "counter", ["kept"], "seven");
    await registry.shutdown();
    await served;
    const later = new CoreRegistry();
    later.register("counter", seven());
    t.after(() => later.shutdown());

    later.serve(settings);
    await later.waitReady();

    const found = await (await fetch(`${endpoint}/actors?name=counter&namespace=default`)).json();
    assert.equal(found.actors[0].key, "kept");
    await later.shutdown();
  });

  it("serves once, and takes no type of actors then", async (t) => {
    const { registry, settings } = await prepared(t);
    const served = registry.serve(settings);

    await assert.rejects(registry.serve(settings), bridged("napi", "invalid_state"));
    assert.throws(() => registry.register("other", seven()), bridged("napi", "invalid_state"));

    await registry.waitReady();
    await registry.shutdown();
    await served;
    await assert.rejects(registry.waitReady(), bridged("napi", "invalid_state"));
    await assert.rejects(registry.serve(settings), bridged("napi", "invalid_state"));
  });

  it("shuts down where it never served", async () => {
    const registry = new CoreRegistry();

    await registry.shutdown();
    await registry.shutdown();

    await assert.rejects(registry.waitReady(), bridged("napi", "invalid_state"));
  });

  it("refuses an endpoint elsewhere, naming it, and ends", async (t) => {
    for (const endpoint of ["https://api.example", "http://10.0.0.7:6420", "nonsense"]) {
      const { registry, settings } = await prepared(t, { endpoint });
      const ready = registry.waitReady();
      const is = bridged("config", "endpoint_not_local", { metadata: { endpoint } });

      await assert.rejects(registry.serve(settings), is);
      await assert.rejects(ready, is);
      // Also for those who ask later.
      await assert.rejects(registry.waitReady(), is);
      assert.equal(told(await registry.health()).body.status, "shut_down");
    }
  });

  it("rejects where the address is taken, and leaves the folder free", async (t) => {
    const { registry, settings, endpoint } = await prepared(t);
    const other = createServer();
    const port = Number(new URL(endpoint).port);
    await new Promise((resolve) => other.listen(port, "127.0.0.1", resolve));
    t.after(() => other.close());

    await assert.rejects(registry.serve(settings), bridged("gateway", "address_unusable"));

    other.close();
    const again = new CoreRegistry();
    again.register("counter", seven());
    const served = again.serve(settings);
    await again.waitReady();
    await again.shutdown();
    await served;
  });

  it("wants a token that somebody chose where other machines reach it", async (t) => {
    const { registry, settings } = await prepared(t, { engineHost: "0.0.0.0" });
    await assert.rejects(registry.serve(settings), bridged("gateway", "token_needed"));

    const { registry: guarded, ...rest } = await prepared(t, {
      engineHost: "0.0.0.0",
      token: "chosen",
    });
    const served = guarded.serve(rest.settings);
    await guarded.waitReady();
    const without = await call(rest.endpoint, "counter", ["a"], "seven");
    assert.equal(without.status, 401);
    const withToken = await call(rest.endpoint, "counter", ["a"], "seven", [], {
      token: "chosen",
    });
    assert.equal(withToken.output, 7);
    await guarded.shutdown();
    await served;
  });

  it("listens where the endpoint says, whatever RivetKit has for the host of an engine", async (t) => {
    const { registry, settings } = await prepared(t, { engineHost: "127.0.0.1" });
    const { port } = new URL(settings.endpoint);
    const endpoint = `http://127.0.0.2:${port}`;
    const served = registry.serve({ ...settings, endpoint });
    await registry.waitReady();

    assert.equal((await call(endpoint, "counter", ["a"], "seven")).output, 7);
    await assert.rejects(fetch(settings.endpoint));
    await registry.shutdown();
    await served;
  });

  it("lets pages of this machine's servers call, and no others", async (t) => {
    const { registry, settings, endpoint } = await prepared(t);
    const served = registry.serve(settings);
    await registry.waitReady();

    const from = async (origin) =>
      (await fetch(`${endpoint}/actors?name=counter&namespace=default`, { headers: { origin } }))
        .status;

    assert.equal(await from("http://localhost:5173"), 200);
    assert.equal(await from("https://evil.example"), 403);
    await registry.shutdown();
    await served;
  });
});

describe("what a registry says of itself", () => {
  it("is not there, ok, and gone, with the version that it was given", async (t) => {
    const { registry, settings } = await prepared(t, {}, { name: "Counter", icon: "🔢" });

    const before = told(await registry.health());
    assert.deepEqual([before.status, before.body.status], [503, "not_started"]);
    assert.throws(() => registry.metadata(), bridged("napi", "invalid_state"));

    const served = registry.serve({ ...settings, serverlessClientEndpoint: "http://elsewhere" });
    assert.equal(told(await registry.health()).body.status, "starting");
    await registry.waitReady();
    assert.deepEqual(told(await registry.health()), {
      status: 200,
      type: "application/json",
      body: { status: "ok", runtime: "rivetkit", version: "2.3.19" },
    });
    const { body } = told(registry.metadata());
    assert.deepEqual(body.actorNames, { counter: { metadata: { icon: "🔢", name: "Counter" } } });
    assert.deepEqual(body.envoy, { kind: { normal: {} }, version: 3 });
    assert.equal(body.clientEndpoint, "http://elsewhere");
    assert.equal("clientToken" in body, false);
    const metrics = registry.metrics();
    assert.equal(metrics.headers["content-type"], "text/plain; version=0.0.4");
    assert.match(String(metrics.body), /^greenroom_store_commits_total \d+$/m);
    assert.ok((await registry.actorStopThresholdMs()) >= 15_000);

    await registry.shutdown();
    await served;
    const after = told(await registry.health());
    assert.deepEqual([after.status, after.body.status], [503, "shut_down"]);
    assert.deepEqual([registry.metrics().status, String(registry.metrics().body)], [200, ""]);
  });
});

describe("the routes within an author's server", () => {
  async function asked(registry, settings, method, url, more = {}) {
    const parts = [];
    let ended;
    const over = new Promise((resolve) => {
      ended = resolve;
    });
    const head = await registry.handleServerlessRequest(
      { method, url, headers: {}, body: Buffer.alloc(0), ...more },
      async (error, event) => {
        assert.equal(error, null);
        if (event.kind === "chunk") parts.push(event.chunk);
        else ended(event);
      },
      new CancellationToken(),
      settings,
    );
    assert.deepEqual(await over, { kind: "end" });
    return { ...head, text: Buffer.concat(parts).toString() };
  }

  it("are there with the base path and without it, and serve the actors meanwhile", async (t) => {
    const { registry, settings, endpoint } = await prepared(t);
    const ask = (...more) => asked(registry, settings, ...more);

    for (const base of ["http://app.example/api/rivet", "http://app.example"]) {
      assert.equal(JSON.parse((await ask("GET", `${base}/health`)).text).status, "ok");
      const metadata = JSON.parse((await ask("GET", `${base}/metadata`)).text);
      assert.deepEqual(metadata.envoy.kind, { serverless: {} });
      assert.equal((await ask("GET", `${base}/`)).status, 200);
      assert.equal((await ask("GET", `${base}/metrics`)).status, 403);
      const unknown = await ask("GET", `${base}/what`);
      assert.deepEqual([unknown.status, unknown.text], [404, "Not Found (RivetKit)"]);
      const start = await ask("POST", `${base}/start`);
      assert.deepEqual([start.status, JSON.parse(start.text).code], [400, "invalid"]);
      const long = await ask("POST", `${base}/start`, { body: Buffer.alloc(101) });
      assert.equal(JSON.parse(long.text).code, "incoming_too_long");
    }
    const headers = { Origin: "http://a.example", "access-control-request-headers": "x-a" };
    const preflight = await ask("OPTIONS", "http://app.example/api/rivet/health", { headers });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers["access-control-allow-origin"], "http://a.example");
    assert.equal(preflight.headers["access-control-allow-headers"], "x-a");
    assert.equal(preflight.headers.vary, "Origin");
    assert.equal((await call(endpoint, "counter", ["a"], "seven")).output, 7);
    await assert.rejects(registry.waitReady(), bridged("napi", "invalid_state"));
    await assert.rejects(registry.serve(settings), bridged("napi", "invalid_state"));
  });

  it("are there again for the next request when the storage could not be opened for one", async (t) => {
    const { registry, settings, endpoint } = await prepared(t);
    const other = createServer();
    await new Promise((resolve) =>
      other.listen(Number(new URL(endpoint).port), "127.0.0.1", resolve),
    );
    const ask = () => asked(registry, settings, "GET", "http://app.example/api/rivet/health");

    for (let i = 0; i < 2; i++) await assert.rejects(ask(), bridged("gateway", "address_unusable"));

    await new Promise((resolve) => other.close(resolve));
    assert.equal((await ask()).status, 200);
  });

  it("show metrics to whoever has the token that was chosen for them", async (t) => {
    const { registry, settings } = await prepared(t);
    process.env.RIVETKIT_METRICS_ENABLED = "1";
    process.env.RIVETKIT_METRICS_TOKEN = "seen";
    t.after(() => {
      delete process.env.RIVETKIT_METRICS_ENABLED;
      delete process.env.RIVETKIT_METRICS_TOKEN;
    });
    const ask = (authorization) => {
      const headers = authorization === undefined ? {} : { authorization };
      return asked(registry, settings, "GET", "http://a.example/metrics", { headers });
    };

    assert.equal((await ask()).status, 401);
    assert.equal((await ask("Bearer seem")).status, 401);
    const shown = await ask("bearer seen");
    assert.equal(shown.status, 200);
    assert.match(shown.text, /greenroom_store_commits_total/);
  });
});

describe("listeners beside the actors", () => {
  it("serve files first, then the application, and nothing of the actors", async (t) => {
    const { registry, settings } = await prepared(t);
    const publicDir = mkdtempSync(path.join(tmpdir(), "greenroom-public-"));
    t.after(() => rmSync(publicDir, { recursive: true, force: true }));
    writeFileSync(path.join(publicDir, "page.html"), "<p>page");
    const served = registry.serve(settings);
    const port = await freePort();
    const seen = [];
    const listened = registry.serveApplicationListener(
      { host: "127.0.0.1", port, publicDir },
      async (error, request) => {
        seen.push({ error, ...request });
        if (request.url.endsWith("/fail")) throw new Error("a secret");
        if (request.url.endsWith("/pieces")) {
          await request.responseBodyStream.write(bytes("in "));
          request.responseBodyStream
            .write(bytes("pieces"))
            .then(() => request.responseBodyStream.end());
          return { status: 200, headers: {}, stream: true };
        }
        return { status: 202, headers: { "x-app": "yes" }, body: request.body };
      },
      settings,
    );
    const url = `http://127.0.0.1:${port}`;
    await until(async () => (await fetch(`${url}/page.html`).catch(() => undefined))?.ok);

    assert.equal(await (await fetch(`${url}/page.html`)).text(), "<p>page");
    const echoed = await fetch(`${url}/actors?a=1`, { method: "POST", body: "hello" });
    assert.deepEqual([echoed.status, await echoed.text()], [202, "hello"]);
    assert.equal(echoed.headers.get("x-app"), "yes");
    const [request] = seen;
    assert.equal(request.error, null);
    assert.equal(request.url, "http://internal/actors?a=1");
    assert.ok(request.cancelToken instanceof CancellationToken);
    assert.equal(await (await fetch(`${url}/pieces`)).text(), "in pieces");
    const failed = await fetch(`${url}/fail`);
    assert.deepEqual([failed.status, await failed.text()], [500, "Internal Server Error"]);
    const long = await fetch(url, { method: "POST", body: Buffer.alloc(101) });
    assert.deepEqual([long.status, await long.text()], [413, "Payload Too Large"]);
    // Nothing of the rules for actors: it is the author's own server.
    const foreign = await fetch(url, { headers: { origin: "https://evil.example" } });
    assert.equal(foreign.status, 202);

    await registry.shutdown();
    await Promise.all([served, listened]);
    await assert.rejects(fetch(url));
  });

  it("break off answers that go on when the registry ends, and write what an application throws", async (t) => {
    const { registry, settings } = await prepared(t);
    const served = registry.serve(settings);
    const port = await freePort();
    const tokens = [];
    const lines = t.mock.method(process.stderr, "write", () => true);
    const listened = registry.serveApplicationListener(
      { host: "127.0.0.1", port },
      async (_, { url, cancelToken, responseBodyStream }) => {
        if (url.endsWith("/fail")) throw new Error("it broke", { cause: new Error("of this") });
        tokens.push(cancelToken);
        await responseBodyStream.write(bytes("data: 1\n\n"));
        return { status: 200, headers: { "content-type": "text/event-stream" }, stream: true };
      },
      settings,
    );
    const url = `http://127.0.0.1:${port}`;
    await until(async () => (await fetch(`${url}/fail`).catch(() => undefined))?.status === 500);
    const line = String(lines.mock.calls.at(-1).arguments[0]);
    lines.mock.restore();
    assert.match(line, /level=error message="the application failed" uri=.*it broke.*of this/);
    const response = await fetch(`${url}/events`);
    const reader = response.body.getReader();
    await reader.read();
    const began = Date.now();

    await registry.shutdown();
    await Promise.all([served, listened]);

    assert.ok(Date.now() - began < 10_000, "nothing waits for the client");
    assert.equal(tokens[0].aborted(), true);
    await assert.rejects(reader.read());
  });

  it("have a registry's own routes before the application, or a 404 without one", async (t) => {
    const { registry, settings, endpoint } = await prepared(t);
    const port = await freePort();
    const listened = registry.serveListener({ host: "127.0.0.1", port }, settings);
    const url = `http://127.0.0.1:${port}`;
    await until(async () => (await fetch(`${url}/api/rivet/health`).catch(() => undefined))?.ok);

    const page = { origin: "http://a.example" };
    const metadata = await fetch(`${url}/api/rivet/metadata`, { headers: page });
    assert.equal(metadata.headers.get("access-control-allow-origin"), page.origin);
    const unknown = await fetch(`${url}/health`);
    assert.deepEqual([unknown.status, await unknown.text()], [404, "Not Found (RivetKit)"]);
    assert.equal((await call(endpoint, "counter", ["a"], "seven")).output, 7);

    await registry.shutdown();
    await listened;
  });
});
