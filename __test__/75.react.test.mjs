// `@rivetkit/react` as it is published, in a page of a real browser, against the gateway.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, describe, it } from "node:test";

import { actor, event, UserError } from "../dist/index.js";
import { inRoot } from "../scripts/lib/paths.mjs";
import { launch, skip } from "./support/browser.mjs";
import { until } from "./support/native.mjs";
import { packagesFor } from "./support/packages.mjs";
import { inMemory, newFolder } from "./support/registry.mjs";

const PACKAGES = {
  "@rivetkit/react": "2.3.11",
  esbuild: "0.25.12",
  react: "19.2.0",
  "react-dom": "19.2.0",
};

const EMPTY = "npm:empty-npm-package@1.0.0";

/** What a page needs nothing of, and one client for all. */
const OVERRIDES = {
  rivetkit: "2.3.19",
  "cbor-extract": "2.2.2",
  "@hono/zod-openapi": EMPTY,
  "@rivet-dev/agent-os-core": EMPTY,
  "@rivet-dev/services": EMPTY,
  "@rivetkit/engine-cli": EMPTY,
  "@rivetkit/engine-envoy-protocol": EMPTY,
  "@rivetkit/rivetkit-napi": EMPTY,
  "@rivetkit/rivetkit-wasm": EMPTY,
  "drizzle-orm": EMPTY,
  hono: EMPTY,
};

const room = actor({
  state: { members: [] },
  events: { said: event() },
  createConnState: (_c, params) => ({ name: params.name }),
  onConnect: (c, conn) => c.state.members.push(conn.state.name),
  onDisconnect: (c, conn) => {
    c.state.members = c.state.members.filter((name) => name !== conn.state.name);
  },
  actions: {
    say(c, text) {
      c.broadcast("said", c.conn.state.name, text);
      return text.length;
    },
    fail: () => {
      throw new UserError("no", { code: "unwanted" });
    },
    members: (c) => c.state.members,
    sleep: (c) => c.sleep(),
  },
  // A page's socket outlives a sleep of its actor.
  options: { sleepTimeout: 60_000 },
});

/** Bundles the page into a folder that is served. */
async function bundled(packages, folder) {
  const source = path.join(packages, "page.jsx");
  copyFileSync(inRoot("__test__", "support", "react", "page.jsx"), source);
  const { build } = createRequire(path.join(packages, "package.json"))("esbuild");
  await build({
    entryPoints: [source],
    bundle: true,
    format: "esm",
    platform: "browser",
    jsx: "automatic",
    outfile: path.join(folder, "page.js"),
    logLevel: "silent",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const script = '<script type="module" src="/page.js"></script>';
  const html = `<!doctype html><title>room</title><div id="root"></div>${script}`;
  writeFileSync(path.join(folder, "index.html"), html);
}

describe("a page with @rivetkit/react", { skip }, () => {
  let registry;
  let listener;
  let browser;
  let packages;
  let missing;
  before(async () => {
    const told = { skip: (why) => (missing = why) };
    packages = await packagesFor(told, "react-page", PACKAGES, { overrides: OVERRIDES });
    if (packages === undefined) return;
    const folder = await newFolder();
    mkdirSync(folder, { recursive: true });
    await bundled(packages, folder);
    registry = inMemory({ room });
    listener = await registry.listen({ port: 0, publicDir: folder });
    browser = await launch();
  });
  after(() => browser?.close());

  const members = (key) => registry.client().room.getOrCreate([key]).members();

  /** A page of one member, connected. */
  async function pageOf(name, encoding) {
    const page = await browser.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    const query = new URLSearchParams({ name, encoding, endpoint: listener.url });
    await page.goto(`${listener.url}/?${query}`);
    await shows(page, "status", "connected");
    return { page, errors };
  }

  const shows = (page, id, text) =>
    page.waitForFunction(
      ([id, text]) => document.getElementById(id)?.textContent === text,
      [id, text],
      { timeout: 20_000 },
    );

  for (const encoding of ["bare", "cbor", "json"]) {
    it(`connects, hears events, calls actions and sees their errors, in ${encoding}`, async (t) => {
      if (packages === undefined) return t.skip(missing);
      const { page, errors } = await pageOf("ann", encoding);

      await page.click("#say");
      await shows(page, "answer", "5");
      await shows(page, "heard", "ann: hello");
      await page.click("#fail");
      await shows(page, "answer", "user.unwanted");

      assert.deepEqual(errors, []);
      await page.close();
    });
  }

  it("keeps its connection while the actor sleeps, and hears of what wakes it", async (t) => {
    if (packages === undefined) return t.skip(missing);
    const { page } = await pageOf("eve", "bare");
    await page.click("#say");
    await shows(page, "heard", "eve: hello");
    const handle = registry.client().room.getOrCreate(["first"]);
    const { actorId } = await registry.actor(handle).info();

    await registry.actor(actorId).sleep();
    assert.equal((await registry.actor(actorId).info()).awake, false);
    await page.click("#say");

    await shows(page, "heard", "eve: hello|eve: hello");
    await page.close();
  });

  it("moves to another actor with its key, and is disconnected when it is closed", async (t) => {
    if (packages === undefined) return t.skip(missing);
    const { page } = await pageOf("bob", "bare");
    await page.click("#move");
    await page.click("#say");
    await shows(page, "answer", "5");
    const isMember = async () => (await members("second")).includes("bob");
    await until(isMember, "the member is there");

    await page.close();

    await until(async () => !(await isMember()), "the member has gone");
  });
});
