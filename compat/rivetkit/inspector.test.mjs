// Looking into RivetKit's actors over HTTP, which wants a token.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";

import { appOf, fresh } from "./support.mjs";

const TOKEN = "token-of-the-tests";
const app = appOf({ areas: ["inspector"], env: { _RIVET_TEST_INSPECTOR_TOKEN: TOKEN } });

describe("the inspector", () => {
  let handle;
  before(async () => {
    handle = app.client().glass.getOrCreate(fresh("glass"));
    await handle.add(1);
  });
  const ask = async (path, init = {}) => {
    const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
    const response = await app.ask(handle, `/inspector${path}`, { headers, ...init });
    return { status: response.status, body: await response.json() };
  };
  const post = (path, body, method = "POST") => ask(path, { method, body: JSON.stringify(body) });

  it("wants its token", async () => {
    for (const headers of [{}, { authorization: "Bearer guess" }]) {
      const { status, body } = await ask("/state", { headers });
      assert.equal(status, 401);
      assert.deepEqual([body.group, body.code], ["inspector", "unauthorized"]);
    }
  });

  it("shows the state, and changes it", async () => {
    assert.deepEqual(await ask("/state"), {
      status: 200,
      body: { state: { n: 2 }, isStateEnabled: true },
    });
    assert.deepEqual(await post("/state", { state: { n: 10 } }, "PATCH"), {
      status: 200,
      body: { ok: true },
    });
    assert.equal(await handle.get(), 10);
  });

  it("lists actions, and calls one", async () => {
    assert.deepEqual((await ask("/rpcs")).body.rpcs.sort(), ["add", "get"]);
    assert.deepEqual((await post("/action/add", { args: [5] })).body, { output: 15 });
  });

  it("lists connections and messages", async () => {
    const conn = handle.connect();
    await conn.get();
    const { connections } = (await ask("/connections")).body;
    assert.ok(connections.length >= 1);
    await conn.dispose();
    const { body } = await ask("/queue");
    assert.equal(body.size, 0);
    assert.equal(body.maxSize, 1_000);
  });

  it("shows tables and rows, and runs statements", async () => {
    const { schema } = (await ask("/database/schema")).body;
    assert.ok(schema.tables.some(({ table }) => table.name === "things"));
    const { rows } = (await ask("/database/rows?table=things&limit=10")).body;
    assert.deepEqual(rows, [{ id: 1, name: "one" }]);
    const executed = await post("/database/execute", { sql: "SELECT count(*) AS n FROM things" });
    assert.deepEqual(executed.body.rows, [{ n: 1 }]);
  });

  it("shows a workflow's history, and all in a summary", async () => {
    const history = (await ask("/workflow-history")).body;
    assert.equal(history.isWorkflowEnabled, true);
    const summary = (await ask("/summary")).body;
    assert.deepEqual(summary.state, { n: 15 });
    assert.ok(summary.rpcs.includes("add"));
    assert.equal(summary.isDatabaseEnabled, true);
  });
});
