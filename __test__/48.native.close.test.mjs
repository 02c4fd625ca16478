// What the contract's objects still do when their generation has ended, or has closed its database.
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

import { actor, awake, bytes, folder, none, numbers, opened } from "./support/native.mjs";

/** What a rejected promise says in the bridge form. */
async function refusal(promise) {
  const error = await promise.then(
    () => "nothing was refused",
    (error) => error,
  );
  const { group, code } = JSON.parse(error.message.slice(error.message.indexOf("{")));
  return `${group}.${code}`;
}

/** Each part once: how it refuses. */
async function refusals(context) {
  const at = Date.now();
  const sql = context.sql();
  const parts = {
    get: () => context.kv().get(bytes("k")),
    put: () => context.kv().put(bytes("k"), bytes("v")),
    list: () => context.kv().listPrefix(none),
    send: () => context.queue().send("job", none),
    receive: () => context.queue().nextBatch({ timeoutMs: 0 }),
    at: () => context.schedule().at(at, "get", none),
    schedules: () => context.schedule().list(),
    execute: () => sql.execute("CREATE TABLE t (a)"),
    begin: () => sql.beginTransaction(),
    workflow: () => context.saveStateAndWorkflowBatch([{ key: none, value: none }]),
  };
  const told = {};
  for (const [name, call] of Object.entries(parts)) told[name] = await refusal(call());
  return told;
}

const all = (told, code) => assert.deepEqual([...new Set(Object.values(told))], [code], told);

/** The files of actors in a folder. */
const filesIn = (path) =>
  existsSync(join(path, "actors")) ? readdirSync(join(path, "actors")) : [];

describe("a generation", () => {
  it("refuses everything after close(), and the next one takes everything", async (t) => {
    const path = folder(t);
    const host = await opened(t, { counter: numbers() }, { path });
    const { context, identity } = await awake(host, actor("counter", "a"));

    await context.sql().close();
    await context.sql().close();
    all(await refusals(context), "sqlite.transaction_closed");
    assert.deepEqual(filesIn(path), []);
    await host.submit(actor("counter", "a"), "add", bytes(2), 2);
    await host.sleep(identity.actorId);
    const again = await awake(host, actor("counter", "a"));

    assert.equal(again.extension.n, 2, "the state is stored as ever");
    await again.context.kv().put(bytes("k"), bytes("v"));
    await again.context.sql().execute("CREATE TABLE t (a)");
    assert.notDeepEqual(filesIn(path), []);
  });

  for (const end of ["sleep", "destroy"]) {
    it(`refuses everything after ${end}, and leaves no file`, async (t) => {
      const path = folder(t);
      const host = await opened(t, { counter: numbers() }, { path });
      const { context, identity } = await awake(host, actor("counter", "a"));
      if (end === "destroy") await context.sql().execute("CREATE TABLE t (a)");
      await host[end](end === "sleep" ? identity.actorId : actor("counter", "a"));

      const { execute, begin, workflow, ...others } = await refusals(context);
      all({ execute, begin }, "sqlite.transaction_closed");
      all({ workflow }, "actor.not_ready");
      all(others, "actor.stopping");
      const gone = async () => {
        for (let n = 0; n < 200 && filesIn(path).length > 0; n += 1) {
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        return filesIn(path);
      };
      assert.deepEqual(await gone(), []);
    });
  }
});
