// Pages of a browser: its own `fetch` and `WebSocket`, without a client, and what pages of other
// origins are refused.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, it } from "node:test";

import { actor, event } from "../dist/index.js";
import { launch, skip } from "./support/browser.mjs";
import { actorUrl } from "./support/gateway.mjs";
import { inMemory, newFolder } from "./support/registry.mjs";

const room = actor({
  state: { said: 0, asked: 0 },
  events: { said: event() },
  onConnect: (_c, conn) => conn.send("said", "welcome"),
  onRequest(c, request) {
    c.state.asked += 1;
    return Response.json({ origin: request.headers.get("origin"), method: request.method });
  },
  onWebSocket(_c, socket) {
    socket.addEventListener("message", ({ data }) => {
      if (data === "close") socket.close(4001, "as you wish");
      else socket.send(data);
    });
  },
  actions: {
    say(c, text) {
      c.state.said += 1;
      c.broadcast("said", text);
      return text.length;
    },
    counts: (c) => [c.state.said, c.state.asked],
  },
});

/** What a page does, by itself: these functions are sent to it. */
const inPage = {
  call: async (url) => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", "x-rivet-encoding": "json" },
      body: JSON.stringify({ args: ["hello"] }),
    });
    return { status: response.status, body: await response.json() };
  },
  /** Opens a socket, sends once it is open, and resolves with what it hears, and its end. */
  talk: ([url, protocols, texts, messages]) =>
    new Promise((resolve) => {
      const socket = new WebSocket(url, protocols);
      socket.binaryType = "arraybuffer";
      const heard = [];
      socket.onopen = () => {
        for (const text of texts) socket.send(text);
      };
      socket.onmessage = ({ data }) => {
        heard.push(typeof data === "string" ? data : data.byteLength);
        if (heard.length === messages) socket.close(4002, "enough");
      };
      socket.onclose = ({ code, reason, wasClean }) => {
        resolve({ heard, code, reason, wasClean, protocol: socket.protocol });
      };
    }),
  tryFetch: (url) => fetch(url).then(({ status }) => status, String),
  tryPost: (url) =>
    fetch(url, { method: "POST", mode: "no-cors", body: '{"args":["x"]}' }).then(
      ({ type }) => type,
      String,
    ),
};

describe("a page", { skip }, () => {
  let registry;
  let listener;
  let other;
  let browser;
  before(async () => {
    const folder = await newFolder();
    mkdirSync(path.join(folder, "sub"));
    writeFileSync(path.join(folder, "index.html"), "<!doctype html><title>the page</title>");
    writeFileSync(path.join(folder, "sub", "module.js"), "export const loaded = 'module';");
    registry = inMemory({ room });
    listener = await registry.listen({ port: 0, publicDir: folder });
    // Another origin of the same machine, which serves the same page.
    const apart = inMemory({ room });
    other = await apart.listen({ port: 0, publicDir: folder });
    browser = await launch();
  });
  after(() => browser?.close());

  const pageOf = async ({ url }) => {
    const page = await browser.newPage();
    await page.goto(`${url}/`);
    return page;
  };
  const socketUrl = (...args) => actorUrl(listener.url, ...args).replace("http:", "ws:");

  it("is served from publicDir, with its modules", async () => {
    const page = await pageOf(listener);
    assert.equal(await page.title(), "the page");
    assert.equal(
      await page.evaluate(() => import("/sub/module.js").then((m) => m.loaded)),
      "module",
    );
    await page.close();
  });

  it("calls actions and asks with fetch", async () => {
    const page = await pageOf(listener);
    const called = await page.evaluate(
      inPage.call,
      actorUrl(listener.url, "room", ["f"], "action/say"),
    );
    assert.deepEqual(called, { status: 200, body: { output: 5 } });
    const asked = actorUrl(listener.url, "room", ["f"], "request/x");
    assert.equal(await page.evaluate(inPage.tryFetch, asked), 200);
    await page.close();
  });

  it("hears events and gets answers over a WebSocket of its own", async () => {
    const page = await pageOf(listener);
    const frame = (tag, val) => JSON.stringify({ body: { tag, val } });
    const texts = [
      frame("SubscriptionRequest", { eventName: "said", subscribe: true }),
      frame("ActionRequest", { id: ["$BigInt", "1"], name: "say", args: ["hi"] }),
    ];
    const ends = await page.evaluate(inPage.talk, [
      socketUrl("room", ["w"], "connect"),
      ["rivet", "rivet_encoding.json"],
      texts,
      4,
    ]);

    assert.deepEqual([ends.code, ends.wasClean, ends.protocol], [4002, true, "rivet"]);
    const heard = ends.heard.map((text) => JSON.parse(text).body);
    assert.deepEqual(heard.map(({ tag }) => tag).sort(), [
      "ActionResponse",
      "Event",
      "Event",
      "Init",
    ]);
    const events = heard.filter(({ tag }) => tag === "Event").map(({ val }) => val.args[0]);
    assert.deepEqual(events, ["welcome", "hi"]);
    await page.close();
  });

  it("speaks over a raw socket, without sub-protocols, and reads how it is closed", async () => {
    const page = await pageOf(listener);
    const url = socketUrl("room", ["r"], "websocket/");
    const echoed = await page.evaluate(inPage.talk, [url, [], ["one", "", "two"], 3]);
    assert.deepEqual([echoed.heard, echoed.code], [["one", "", "two"], 4002]);
    const closed = await page.evaluate(inPage.talk, [url, [], ["close"], 1]);
    assert.deepEqual([closed.code, closed.reason, closed.wasClean], [4001, "as you wish", true]);
    await page.close();
  });

  it("of another origin reads nothing, does nothing, and connects to nothing", async () => {
    const page = await pageOf(other);
    const handle = registry.client().room.getOrCreate("o");
    assert.deepEqual(await handle.counts(), [0, 0]);

    const asked = actorUrl(listener.url, "room", ["o"], "request/x");
    // The answer has no header that lets the page read it.
    assert.match(String(await page.evaluate(inPage.tryFetch, asked)), /TypeError/);
    const called = actorUrl(listener.url, "room", ["o"], "action/say");
    // Sent without being asked for, as a form is: the page cannot read the answer, and it is refused.
    assert.equal(await page.evaluate(inPage.tryPost, called), "opaque");
    const refused = await page.evaluate(inPage.talk, [
      socketUrl("room", ["o"], "connect"),
      ["rivet"],
      [],
      1,
    ]);
    assert.deepEqual(refused.heard, []);
    assert.equal(refused.code, 1011);
    assert.match(refused.reason, /^api\.forbidden(#|$)/);

    assert.deepEqual(await handle.counts(), [0, 0]);
    await page.close();
  });

  it("of another origin is served where that is allowed", async () => {
    const allowed = inMemory({ room });
    const { url } = await allowed.listen({ port: 0, origins: [other.url] });
    const page = await pageOf(other);
    const called = await page.evaluate(inPage.call, actorUrl(url, "room", ["o"], "action/say"));
    assert.deepEqual(called, { status: 200, body: { output: 5 } });
    await page.close();
  });
});
