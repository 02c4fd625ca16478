// Development servers: a file of actors is edited, the state stays, and the new code answers.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

import { actor } from "../dist/index.js";
import { packagesFor } from "./support/packages.mjs";
import { get, getUntil, projectIn } from "./support/project.mjs";
import { inFolder, newFolder } from "./support/registry.mjs";

const TOOLS = { tsx: "4.23.15", vite: "8.4.0" };

const actors = `
import { actor, setup } from "greenroom";
const counter = actor({
  state: { n: 0 },
  actions: { add: (c) => "one " + ++c.state.n + " " + process.pid },
});
export const registry = setup({ use: { counter }, storage: "data", reload: "now" });
export const add = () => registry.client().counter.getOrCreate("a").add();
`;

/** A server whose process is started again after each edit. */
const restarted = (extension) => `
import { createServer } from "node:http";
import { add, registry } from "./actors${extension}";
registry.drainOnSignals();
const server = createServer(async (_, response) => response.end(await add()));
server.listen(0, () => console.log("port " + server.address().port));
`;

/** What the server of each tool answers before and after an edit, and that its process is another. */
async function restarts(t, command, extension) {
  const packages = await packagesFor(t, "tools", TOOLS);
  if (packages === undefined) return;
  const { start, edit } = projectIn(t, packages, {
    [`actors${extension}`]: actors,
    [`main${extension}`]: restarted(extension.replace("ts", "js")),
  });
  const server = start(command(packages));

  const before = await get(await server.says(/port (\d+)/));
  const save = edit(`actors${extension}`, "one ", "two ");
  const after = await get(await server.says(/port (\d+)/, 2, save));

  assert.match(before, /^one 1 \d+$/);
  assert.match(after, /^two 2 \d+$/);
  assert.notEqual(before.split(" ")[2], after.split(" ")[2]);
}

describe("after an edit the state is kept and the new code answers", () => {
  it("under tsx watch", async (t) => {
    await restarts(t, (at) => [`${at}/node_modules/tsx/dist/cli.mjs`, "watch", "main.mts"], ".mts");
  });

  it("under node --watch", async (t) => {
    await restarts(t, () => ["--watch", "main.mjs"], ".mjs");
  });

  it("in Vite's server, whose process goes on", async (t) => {
    const packages = await packagesFor(t, "tools", TOOLS);
    if (packages === undefined) return;
    const { start, edit } = projectIn(t, packages, {
      "actors.ts": actors,
      "app.ts": `import { add } from "./actors";\nexport const answer = add;\n`,
      "main.mjs": `
import { createServer } from "node:http";
import { createServer as createVite } from "vite";
const vite = await createVite({
  server: { middlewareMode: true, hmr: false, ws: false },
  appType: "custom",
  logLevel: "error",
});
const server = createServer(async (_, response) => {
  const { answer } = await vite.ssrLoadModule("/app.ts");
  response.end(await answer());
});
server.listen(0, () => console.log("port " + server.address().port));
`,
    });
    const server = start(["main.mjs"]);
    const port = await server.says(/port (\d+)/);

    const answers = [await get(port)];
    await getUntil(port, "", "two", answers, edit("actors.ts", "one ", "two "));
    await getUntil(port, "", "three", answers, edit("actors.ts", "two ", "three "));

    const counted = answers.map((answer) => Number(answer.split(" ")[1]));
    assert.deepEqual(
      counted,
      [...answers.keys()].map((at) => at + 1),
    );
    assert.equal(new Set(answers.map((answer) => answer.split(" ")[2])).size, 1);
  });
});

describe("a folder that another process uses", () => {
  const dist = fileURLToPath(new URL("../dist/index.js", import.meta.url));
  const one = actor({ state: { n: 0 }, actions: { add: (c) => ++c.state.n } });

  /** A process that has the folder open, until it is killed. */
  async function owner(t, folder) {
    const code = `
      const { actor, setup } = require(${JSON.stringify(dist)});
      const one = actor({ state: { n: 0 }, actions: { add: (c) => ++c.state.n } });
      const client = setup({ use: { one }, storage: ${JSON.stringify(folder)} }).client();
      client.one.getOrCreate("a").add().then(() => console.log("open"));
      setInterval(() => {}, 1_000);`;
    const child = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "inherit"] });
    t.after(() => child.kill("SIGKILL"));
    await new Promise((resolve) => child.stdout.once("data", resolve));
    return child;
  }

  it("is refused when the lock timeout is over, with the owner's pid", async (t) => {
    const folder = await newFolder();
    const { pid } = await owner(t, folder);
    const registry = inFolder(folder, { one }, { lockTimeout: 300 });
    const began = performance.now();

    await assert.rejects(registry.client().one.getOrCreate("a").add(), (error) => {
      assert.equal(`${error.group}.${error.code}`, "storage.locked");
      assert.ok(error.message.includes(String(pid)), error.message);
      return true;
    });
    assert.ok(performance.now() - began >= 300);
  });

  it("is taken over when the owner ends while it is waited for", async (t) => {
    const folder = await newFolder();
    const child = await owner(t, folder);
    const waiting = inFolder(folder, { one }).client().one.getOrCreate("a").add();

    child.kill("SIGKILL");

    assert.equal(await waiting, 2);
  });
});
