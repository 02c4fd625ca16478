// The gateway through curl: HTTP as it is spoken outside of Node.js.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";

import { actor } from "../dist/index.js";
import { actorUrl } from "./support/gateway.mjs";
import { deferred, inMemory } from "./support/registry.mjs";

const run = promisify(execFile);
const hasCurl = await run("curl", ["--version"]).then(
  () => true,
  () => false,
);
if (!hasCurl && process.env.CI) throw new Error("curl is not installed");

/** What streams wait for before their second piece, by their names. */
const goOn = { stream: deferred(), old: deferred() };
/** Neither what a machine has set up for curl, nor for ever. */
const ALWAYS = ["--disable", "--silent", "--show-error", "--noproxy", "*", "--max-time", "20"];

const site = actor({
  state: { count: 0 },
  async onRequest(_c, request) {
    const { pathname, search, searchParams } = new URL(request.url);
    if (pathname === "/pieces") {
      const body = new ReadableStream({
        async start(controller) {
          controller.enqueue(new TextEncoder().encode("first;"));
          await goOn[searchParams.get("name")].promise;
          controller.enqueue(new TextEncoder().encode("second"));
          controller.close();
        },
      });
      return new Response(body);
    }
    const { byteLength } = await request.arrayBuffer();
    return Response.json({ method: request.method, path: pathname + search, byteLength });
  },
  actions: {
    add(c, by) {
      c.state.count += by;
      return c.state.count;
    },
  },
});

describe("curl", { skip: !hasCurl && "curl is not installed" }, () => {
  let registry;
  let url;
  before(async () => {
    registry = inMemory({ site });
    ({ url } = await registry.listen({ port: 0 }));
  });
  after(() => registry.shutdown());

  const at = (path, more = "") => `${actorUrl(url, "site", ["a"], path)}${more}`;
  const page = (path, more) => at(`request${path}`, more);

  /** What curl prints, with the heads of the answers in front. `@-` among the arguments is `input`. */
  async function curlWith(input, ...args) {
    const running = run("curl", [...ALWAYS, "--include", ...args], { maxBuffer: 1 << 26 });
    // One that has its answer ends without reading it.
    running.child.stdin.on("error", () => {});
    running.child.stdin.end(input);
    return (await running).stdout;
  }
  const curl = (...args) => curlWith("", ...args);

  /** The last head, by names, its status, and the body behind it. */
  function parts(output) {
    const blocks = output.split("\r\n\r\n");
    const last = blocks.findLastIndex((block) => block.startsWith("HTTP/"));
    const [status, ...lines] = blocks[last].split("\r\n");
    const headers = Object.fromEntries(lines.map((line) => line.split(/: ?(.*)/s)));
    const body = blocks.slice(last + 1).join("\r\n\r\n");
    return { status: Number(status.split(" ")[1]), version: status.split(" ")[0], headers, body };
  }

  it("calls an action with JSON", async () => {
    const { status, headers, body } = parts(await curl("--json", '{"args":[2]}', at("action/add")));
    assert.equal(status, 200);
    assert.equal(headers["content-type"], "application/json");
    assert.match(headers["x-rivet-ray-id"], /^\w+$/);
    assert.deepEqual(JSON.parse(body), { output: 2 });
  });

  it("reads errors as JSON", async () => {
    const { status, headers, body } = parts(await curl("--json", "{", at("action/add")));
    assert.equal(status, 400);
    assert.equal(headers["content-type"], "application/json");
    assert.equal(JSON.parse(body).code, "invalid_request");
    assert.equal(parts(await curl(`${url}/nowhere`)).status, 404);
  });

  it("asks an actor's pages, with a query of its own", async () => {
    const { status, body } = parts(await curl(page("/x/y", "&a=%2F&b")));
    assert.equal(status, 200);
    assert.deepEqual(JSON.parse(body), { method: "GET", path: "/x/y?a=%2F&b", byteLength: 0 });
  });

  it("gets the head alone with HEAD, and the length of the body in it", async () => {
    const got = parts(await curl(page("/head")));
    const { status, headers, body } = parts(await curl("--head", page("/head")));
    assert.equal(status, 200);
    assert.equal(headers["content-type"], got.headers["content-type"]);
    assert.ok(got.body.length > 0);
    // `GET` and `HEAD` are as long as each other, in letters.
    assert.equal(headers["content-length"], String(got.body.length + 1));
    assert.equal(got.headers["content-length"], String(got.body.length));
    assert.equal(body, "");
    const streamed = parts(await curl("--head", page("/pieces", "&name=old")));
    assert.deepEqual([streamed.status, streamed.headers["content-length"]], [200, undefined]);
  });

  it("is told with OPTIONS what pages of browsers may do", async () => {
    const { status, headers, body } = parts(await curl("--request", "OPTIONS", page("/x")));
    assert.equal(status, 204);
    assert.equal(body, "");
    assert.match(headers["access-control-allow-methods"], /GET, POST/);
    assert.equal(headers["access-control-max-age"], "86400");
  });

  it("hears a stream piece by piece", async () => {
    const child = spawn("curl", [...ALWAYS, "--no-buffer", page("/pieces", "&name=stream")]);
    child.stdout.setEncoding("utf8");
    const heard = [];
    for await (const piece of child.stdout) {
      heard.push(piece);
      if (heard.length === 1) goOn.stream.resolve();
    }
    assert.equal(heard[0], "first;");
    assert.equal(heard.join(""), "first;second");
  });

  it("is told to go on before it sends a body, where it asks", async () => {
    const body = "x".repeat(100_000);
    const expects = ["--header", "Expect: 100-continue", "--data", "@-"];
    const output = await curlWith(body, ...expects, page("/e"));
    assert.match(output, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200/);
    assert.equal(JSON.parse(parts(output).body).byteLength, 100_000);
  });

  it("sends a body in chunks, of no length that is known", async () => {
    const chunked = ["--header", "Transfer-Encoding: chunked", "--header", "Expect:"];
    const sent = "x".repeat(300_000);
    const { body } = parts(await curlWith(sent, ...chunked, "--data", "@-", page("/c")));
    assert.deepEqual(JSON.parse(body), { method: "POST", path: "/c", byteLength: 300_000 });
    const called = parts(await curl(...chunked, "--json", '{"args":[3]}', at("action/add")));
    assert.equal(called.status, 200);
  });

  it("speaks HTTP/1.0, and gets whole answers of a length that is not known before", async () => {
    const { status, headers, body } = parts(await curl("--http1.0", page("/old")));
    assert.equal(status, 200);
    assert.equal(headers["transfer-encoding"], undefined);
    assert.equal(JSON.parse(body).path, "/old");
    goOn.old.resolve();
    const streamed = parts(await curl("--http1.0", page("/pieces", "&name=old")));
    assert.equal(streamed.headers["transfer-encoding"], undefined);
    assert.equal(streamed.body, "first;second");
  });

  it("makes one connection for several requests, unless it asks for its end", async () => {
    const connects = ["--write-out", "\n%{num_connects};"];
    const counts = (output) => [...output.matchAll(/\n(\d+);/g)].map(([, count]) => Number(count));
    const urls = [page("/1"), page("/2"), at("action/add")];
    assert.deepEqual(counts(await curl(...connects, ...urls)), [1, 0, 0]);
    const close = ["--header", "Connection: close"];
    assert.deepEqual(counts(await curl(...connects, ...close, ...urls)), [1, 1, 1]);
  });
});
