// Raw requests to RivetKit's actors.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, fresh } from "./support.mjs";

const app = appOf("web");
const site = (options) => app.client().site.getOrCreate(fresh("site"), options);

describe("a request", () => {
  it("brings method, path, query, headers and body, and the answer its own", async () => {
    const response = await site({ params: { name: "ada" } }).fetch("a/b?c=1&d=%20", {
      method: "PUT",
      body: "ü",
      headers: { "x-own": "mine" },
    });
    assert.equal(response.status, 201);
    assert.equal(response.headers.get("x-key"), "site");
    assert.deepEqual(await response.json(), {
      method: "PUT",
      pathname: "/a/b",
      search: "?c=1&d=%20",
      body: "ü",
      header: "mine",
      name: "ada",
      same: true,
    });
  });

  it("may be a Request or a URL, of any method", async () => {
    const handle = site();
    for (const method of ["GET", "POST", "DELETE", "PATCH"]) {
      const seen = await (await handle.fetch("x", { method })).json();
      assert.deepEqual([seen.method, seen.pathname], [method, "/x"]);
    }
    assert.equal((await handle.fetch("x", { method: "HEAD" })).status, 201);
    const request = new Request("http://any/y?z=1", { method: "POST", body: "b" });
    const seen = await (await handle.fetch(request)).json();
    assert.deepEqual([seen.pathname, seen.search, seen.body], ["/y", "?z=1", "b"]);
  });

  it("may be answered with nothing, bytes, another place, or a lot", async () => {
    const handle = site();
    const empty = await handle.fetch("empty");
    assert.deepEqual([empty.status, await empty.text()], [204, ""]);
    const bytes = await (await handle.fetch("bytes")).arrayBuffer();
    assert.deepEqual(new Uint8Array(bytes), new Uint8Array([0, 255, 1]));
    const redirect = await app.ask(handle, "/request/redirect", { redirect: "manual" });
    assert.deepEqual([redirect.status, redirect.headers.get("location")], [302, "/x"]);
    assert.equal((await (await handle.fetch("large")).text()).length, 3_000_000);
  });

  it("may have a body that comes in parts, and so may the answer", async () => {
    const handle = site();
    const body = new Uint8Array(60_000).map((_, index) => index);
    const echoed = await handle.fetch("echo", { method: "POST", body });
    assert.deepEqual(new Uint8Array(await echoed.arrayBuffer()), body);
    const streamed = await handle.fetch("stream");
    assert.equal(await streamed.text(), "one two three");
  });

  it("that throws is answered with its error, or a hidden one", async () => {
    const handle = site();
    const failed = await handle.fetch("fail");
    assert.ok(failed.status >= 400);
    const error = await failed.json();
    assert.deepEqual([error.group, error.code, error.message], ["user", "no_page", "no page"]);
    const crashed = await handle.fetch("crash");
    assert.equal(crashed.status, 500);
    const text = await crashed.text();
    assert.match(text, /internal_error/);
    assert.doesNotMatch(text, /secret/);
  });

  it("is refused by onBeforeConnect, and by an actor that takes none", async () => {
    const response = await site({ params: { name: "eve" } }).fetch("x");
    assert.ok(response.status >= 400);
    assert.equal((await response.json()).code, "unwanted");
    const deaf = await app.client().deaf.getOrCreate(fresh("deaf")).fetch("x");
    assert.equal(deaf.status, 404);
  });

  it("that are many at once are all answered", async () => {
    const handle = site();
    const all = Array.from({ length: 50 }, (_, n) => handle.fetch(`n${n}`));
    const seen = await Promise.all(all.map(async (asked) => (await (await asked).json()).pathname));
    assert.deepEqual(
      seen,
      Array.from({ length: 50 }, (_, n) => `/n${n}`),
    );
    assert.equal(await handle.asked(), 50);
  });
});
