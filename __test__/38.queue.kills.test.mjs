// Messages and SIGKILL.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, describe, it } from "node:test";

import { actor, queue } from "../dist/index.js";
import { bodies, inside } from "./support/queues.mjs";
import { inFolder, newFolder, until } from "./support/registry.mjs";

// A wait for a message holds no process, and some tests have nothing else.
const awake = setInterval(() => {}, 1_000);
after(() => clearInterval(awake));

describe("kill -9", () => {
  /** Runs `body` in a process of its own that opens `folder`; `definition` is an actor's config. */
  async function killed(folder, definition, body) {
    const source = `
      import { actor, queue, setup } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
      const it = actor(${definition});
      const handle = setup({ use: { it }, storage: ${JSON.stringify(folder)} }).client().it.getOrCreate("k");
      ${body}
    `;
    const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
      stdio: "inherit",
    });
    const [, signal] = await once(child, "close");
    assert.equal(signal, "SIGKILL");
  }

  for (const durability of ["reply", "interval"]) {
    it(`loses no message whose send was acknowledged (${durability})`, async () => {
      const folder = await newFolder();
      const options = `options: { durability: ${JSON.stringify(durability)}, stateSaveInterval: 600_000 }`;
      await killed(
        folder,
        `{ queues: { job: queue() }, actions: {}, ${options} }`,
        `await Promise.all(Array.from({ length: 200 }, (_, n) => handle.send("job", n)));
         process.kill(process.pid, "SIGKILL");`,
      );

      const { run } = inside({ state: undefined }, (use) => inFolder(folder, use));
      const received = bodies(await run((c) => c.queue.nextBatch({ count: 999 })));
      assert.deepEqual(
        received,
        Array.from({ length: 200 }, (_, n) => n),
      );
    });
  }

  it("in the middle of a message to complete: it comes again with nobody calling", async () => {
    const folder = await newFolder();
    await killed(
      folder,
      `{
        queues: { job: queue() },
        run: async (c) => {
          for await (const message of c.queue.iter({ completable: true })) {
            if (message.body === "deadly") process.kill(process.pid, "SIGKILL");
            await message.complete();
          }
        },
        actions: {},
      }`,
      `void handle.send("job", "harmless");
       void handle.send("job", "deadly");
       setInterval(() => {}, 1000);`,
    );

    const seen = [];
    const registry = inFolder(folder, {
      it: actor({
        queues: { job: queue() },
        run: async (c) => {
          for await (const message of c.queue.iter({ completable: true })) {
            seen.push([message.body, message.deliveryCount]);
            await message.complete();
          }
        },
        actions: {},
      }),
    });
    // Opens the folder, and calls nobody.
    await registry.list();
    await until(() => seen.length > 0, "it came again");
    assert.deepEqual(seen, [["deadly", 2]]);
  });

  it("after a message that was not to be completed: it does not come again", async () => {
    const folder = await newFolder();
    await killed(
      folder,
      `{
        queues: { job: queue() },
        actions: { take: async (c) => { await c.queue.next(); process.kill(process.pid, "SIGKILL"); } },
      }`,
      `await handle.send("job", 1);
       await handle.send("job", 2);
       await handle.take();`,
    );

    const { run } = inside({ state: undefined }, (use) => inFolder(folder, use));
    assert.deepEqual(bodies(await run((c) => c.queue.tryNextBatch({ count: 9 }))), [2]);
  });
});
