// The chat, in a browser: two pages, one room, and a server that is killed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";

import { command, compile } from "../scripts/lib/examples.mjs";
import { ROOT } from "../scripts/lib/paths.mjs";
import { execute } from "../scripts/lib/steps.mjs";
import { launch, skip } from "./support/browser.mjs";

describe("the chat", { skip }, () => {
  let folder;
  let server;
  let browser;

  /** Starts the server on the folder; `port` 0 is any. */
  async function start(port) {
    const [file, ...args] = command("chat", [String(port), folder]);
    const child = spawn(file, args, { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
    const [line] = await once(createInterface(child.stdout), "line");
    const url = /http:\S+\//.exec(line)?.[0];
    assert.ok(url, line);
    server = { child, url };
  }

  async function kill() {
    const gone = once(server.child, "exit");
    server.child.kill("SIGKILL");
    await gone;
  }

  /** A page of its own session, in the room. */
  async function enter(name) {
    const context = await browser.newContext();
    const page = await context.newPage();
    const sockets = [];
    page.on("websocket", (socket) => sockets.push(socket));
    page.on("pageerror", (error) => {
      throw error;
    });
    await page.goto(`${server.url}?room=kitchen&name=${name}`);
    await page.click("#door button");
    await page.waitForSelector("#status[data-status=connected]");
    return { page, sockets };
  }

  const say = async ({ page }, text) => {
    await page.fill("#text", text);
    await page.press("#text", "Enter");
  };

  /** Waits for a message that the server has acknowledged, or sent. */
  const sees = ({ page }, text) =>
    page.locator(".message:not(.sending) .what", { hasText: text }).first().waitFor();

  const texts = ({ page }) => page.locator(".message .what").allTextContents();

  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "greenroom-chat-"));
    await execute(compile(), { cwd: ROOT });
    await start(0);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    if (server) await kill();
    rmSync(folder, { recursive: true, force: true });
  });

  let ada;
  let grace;

  it("takes what one page says to the other, and tells who is here", async () => {
    ada = await enter("ada");
    grace = await enter("grace");

    await say(ada, "is there coffee?");
    await sees(grace, "is there coffee?");
    await say(grace, "always");
    await sees(ada, "always");

    await ada.page.locator("#here li", { hasText: "grace" }).waitFor();
    assert.deepEqual(await texts(ada), ["is there coffee?", "always"]);
    assert.deepEqual(await texts(grace), ["is there coffee?", "always"]);
  });

  it("refuses a name that is taken", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${server.url}?name=ada`);
    await page.click("#door button");

    await page.locator("#refused", { hasText: "ada is here already" }).waitFor();
    await context.close();
  });

  it("sleeps while the sockets stay open, and wakes at the next word", async () => {
    const wakes = async () => Number(/\d+/.exec(await ada.page.textContent("#wakes"))[0]);
    const before = await wakes();
    const found = await fetch(`${server.url}actors?name=room&key=kitchen`);
    const [{ actor_id: id }] = (await found.json()).actors;
    const slept = await fetch(`${server.url}actors/${id}/sleep`, { method: "POST", body: "{}" });
    assert.equal(slept.status, 200);

    await say(grace, "still there?");
    await sees(ada, "still there?");

    while ((await wakes()) === before) await new Promise(setImmediate);
    assert.deepEqual([ada.sockets.length, grace.sockets.length], [1, 1]);
    assert.deepEqual([ada.sockets[0].isClosed(), grace.sockets[0].isClosed()], [false, false]);
  });

  it("says later what it was told to", async () => {
    await ada.page.fill("#text", "time for lunch");
    // In a moment: nobody has ten seconds.
    await ada.page
      .locator("#when option")
      .nth(1)
      .evaluate((option) => {
        option.value = "2000";
      });
    await ada.page.selectOption("#when", { index: 1 });
    await ada.page.press("#text", "Enter");

    await grace.page.locator("#later li", { hasText: "time for lunch" }).waitFor();
  });

  it("loses no message that was acknowledged when the server is killed, and takes those that wait", async () => {
    const { port } = new URL(server.url);
    await say(ada, "before the end");
    await sees(ada, "before the end");

    await kill();
    await ada.page.locator("#status:not([data-status=connected])").waitFor();
    await say(ada, "while nobody listens");
    await start(port);

    await sees(ada, "while nobody listens");
    await sees(grace, "while nobody listens");
    await sees(grace, "time for lunch");
    const all = ["is there coffee?", "always", "still there?", "before the end"];
    for (const page of [ada, grace]) {
      const shown = await texts(page);
      for (const text of [...all, "while nobody listens", "time for lunch"]) {
        assert.equal(shown.filter((each) => each === text).length, 1, `${text} in ${shown}`);
      }
    }
    await ada.page.locator("#here li", { hasText: "grace" }).waitFor();
  });
});
