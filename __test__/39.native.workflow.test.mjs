// The contract's flushes of a workflow: state and rows in one commit.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import {
  actor,
  awake,
  bytes,
  folder,
  NapiActorFactory,
  none,
  opened,
  text,
} from "./support/native.mjs";

/** What a rejected promise says in the bridge form. */
async function refusal(promise) {
  const error = await promise.then(
    () => assert.fail("nothing was refused"),
    (error) => error,
  );
  const { group, code, message } = JSON.parse(error.message.slice(error.message.indexOf("{")));
  return { is: `${group}.${code}`, message };
}

const rowsOf = async (ctx) => {
  const { rows } = await ctx.sql().query("SELECT hex(key), value FROM _rivet_wf_kv ORDER BY key");
  return rows.map(([key, value]) => [key, text(value)]);
};

const row = (key, value) => ({ key: bytes(key), value: bytes(value) });

/** An actor whose state is asked for. */
function flow(actions = {}, callbacks = {}, config = {}) {
  const wrapped = {};
  const all = {
    flush: (ctx, args) => ctx.saveStateAndWorkflowBatch([row("k", args)]),
    set: (ctx, args) => {
      ctx.runtimeState().value = args;
    },
    rows: async (ctx) => JSON.stringify(await rowsOf(ctx)),
    state: (ctx) => text(ctx.state()),
    ...actions,
  };
  for (const [name, action] of Object.entries(all)) {
    wrapped[name] = async (_, { ctx, args }) => {
      const value = await action(ctx, text(args));
      return value === undefined ? undefined : bytes(value);
    };
  }
  return new NapiActorFactory(
    {
      createState: async () => bytes("first"),
      serializeState: async (_, { ctx }) => {
        const { value } = ctx.runtimeState();
        return value === undefined ? {} : { state: bytes(value) };
      },
      actions: wrapped,
      ...callbacks,
    },
    { hasState: true, ...config },
  );
}

describe("saveStateAndWorkflowBatch()", () => {
  it("refuses what is too large, in the words of the contract, and stores nothing of it", async (t) => {
    const host = await opened(t, {
      flow: flow({
        async large(ctx) {
          const value = Buffer.alloc(262_145);
          const { is, message } = await refusal(
            ctx.saveStateAndWorkflowBatch([row("small", "x"), { key: bytes("k"), value }]),
          );
          assert.match(message, /workflow kv value exceeds/);
          return is;
        },
        async many(ctx) {
          ctx.runtimeState().value = "new";
          const rows = Array.from({ length: 127 }, (_, n) => row(n, "x"));
          return (await refusal(ctx.saveStateAndWorkflowBatch(rows))).is;
        },
      }),
    });
    const target = actor("flow", "a");
    const call = async (name, args = none) => text(await host.submit(target, name, args, 2));

    assert.equal(await call("large"), "workflow.value_too_large");
    assert.equal(await call("many"), "workflow.too_many_rows");
    assert.equal(await call("rows"), "[]");
  });

  it("stores state and rows together, over a restart, under keys with one prefix", async (t) => {
    const path = folder(t);
    const target = actor("flow", "a");
    let host = await opened(t, { flow: flow() }, { path });
    await host.submit(target, "set", bytes("new"), 2);
    await host.submit(target, "flush", bytes("one"), 2);
    assert.equal(text(await host.submit(target, "state", none, 2)), "new");
    await host.submit(target, "flush", bytes("two"), 2);
    await host.shutdown(1_000);

    host = await opened(t, { flow: flow() }, { path });
    const call = async (name) => text(await host.submit(target, name, none, 2));

    assert.equal(await call("state"), "new");
    assert.deepEqual(JSON.parse(await call("rows")), [["06016B", "two"]]);
  });

  it("is stored in the order of the calls", async (t) => {
    const host = await opened(t, {
      flow: flow({
        async three(ctx) {
          const flushes = ["1", "2", "3"].map((n) => ctx.saveStateAndWorkflowBatch([row("k", n)]));
          const ended = [];
          await Promise.all(flushes.map((flush, n) => flush.then(() => ended.push(n))));
          return JSON.stringify([ended, await rowsOf(ctx)]);
        },
      }),
    });

    const three = await host.submit(actor("flow", "a"), "three", none, 2);
    assert.deepEqual(JSON.parse(text(three)), [[0, 1, 2], [["06016B", "3"]]]);
  });

  it("is refused before the actor runs and after its end", async (t) => {
    const refused = {};
    const onWake = async (_, { ctx }) => {
      refused.early = (await refusal(ctx.saveStateAndWorkflowBatch([row("k", "x")]))).is;
      refused.ctx = ctx;
    };
    const host = await opened(t, { flow: flow({}, { onWake }) });
    const { identity } = await awake(host, actor("flow", "a"), "state");
    await host.sleep(identity.actorId);
    const late = (await refusal(refused.ctx.saveStateAndWorkflowBatch([row("k", "x")]))).is;

    assert.deepEqual([refused.early, late], ["actor.not_ready", "actor.not_ready"]);
  });
});

describe("the table of workflows", () => {
  it("is there before onMigrate, and SQL can do with its rows as it likes", async (t) => {
    let found;
    const onMigrate = async (_, { ctx }) => {
      const sql = ctx.sql();
      await sql.execute("INSERT INTO _rivet_wf_kv (key, value) VALUES (x'0601', x'61')");
      await sql.execute(
        "INSERT INTO _rivet_wf_kv (key, value) VALUES (x'0601', x'62') ON CONFLICT (key) DO UPDATE SET value = excluded.value",
      );
      await sql.execute("DELETE FROM _rivet_wf_kv WHERE key >= x'0602'");
      found = await rowsOf(ctx);
    };
    const host = await opened(t, { flow: flow({}, { onMigrate }) });

    await host.submit(actor("flow", "a"), "flush", bytes("two"), 2);

    assert.deepEqual(found, [["0601", "b"]]);
    assert.deepEqual(JSON.parse(text(await host.submit(actor("flow", "a"), "rows", none, 2))), [
      ["0601", "b"],
      ["06016B", "two"],
    ]);
  });
});
