// Changes that nobody waits for: what ends the process, and what does not.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";

const layer = (name) => JSON.stringify(new URL(`../dist/${name}.js`, import.meta.url).href);

/** Runs an actor whose next commit fails while `change`, of its context, is not awaited. */
function program(change) {
  const source = `
    import { actor, queue } from ${layer("index")};
    import { testRuntime } from ${layer("testing")};
    const it = actor({
      state: { n: 0 },
      queues: { job: queue() },
      actions: {
        begin: async (c) => {
          await c.queue.send("job", 1);
          c.state.n += 1;
        },
        async change(c) {
          const message = await c.queue.next({ completable: true });
          await runtime.failNextCommit();
          c.state.n += 1;
          void (${change});
        },
        n: (c) => c.state.n,
      },
    });
    const runtime = testRuntime({ use: { it }, logging: { level: "silent" } });
    const handle = runtime.client.it.getOrCreate("a");
    await handle.begin();
    const failed = await handle.change().catch(({ group, code }) => group + "." + code);
    await new Promise((resolve) => setTimeout(resolve, 20));
    console.log(failed, await handle.n());
    await runtime.close();
  `;
  const args = ["--input-type=module", "-e", source];
  return spawnSync(process.execPath, args, { encoding: "utf8", timeout: 30_000 });
}

describe("a change that nobody waits for", () => {
  for (const change of [
    'c.kv.put("a", "b")',
    'c.kv.delete("a")',
    'c.queue.send("job", 2)',
    "message.complete()",
    "message.nack()",
    "c.queue.complete(message)",
    'c.schedule.after(60_000, "n")',
    'c.cron.every({ name: "a", interval: 5_000, action: "n" })',
    "c.saveState()",
    "c.flush()",
  ]) {
    it(`fails its caller when the disk does, and the process lives: ${change}`, () => {
      const { status, stdout, stderr } = program(change);

      const expected = { status: 0, stdout: "storage.full 1\n", stderr: "" };
      assert.deepEqual({ status, stdout, stderr }, expected);
    });
  }

  it("is an unhandled rejection when it is wrong itself", () => {
    const { status, stderr } = program('c.queue.send("typo", 2)');

    assert.equal(status, 1);
    assert.match(stderr, /Queue `typo` is not declared/);
  });
});
