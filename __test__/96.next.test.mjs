// Next's development server: an edit of the actors keeps the state and brings the new code.
import assert from "node:assert/strict";
import { it } from "node:test";

import { createClient } from "greenroom/client";
import { packagesFor } from "./support/packages.mjs";
import { get, getUntil, projectIn } from "./support/project.mjs";
import { sample } from "./support/samples.mjs";

const PACKAGES = { next: "16.4.6", react: "19.3.1", "react-dom": "19.3.1" };

const route = (answer) => `
import { registry } from "../../actors";
export const dynamic = "force-dynamic";
export async function GET() {
  const handle = registry.client().counter.getOrCreate("a");
  return new Response(await ${answer});
}`;

it("route handlers of Next's development server run the edited actor on the same state, and answer clients", async (t) => {
  const packages = await packagesFor(t, "next", PACKAGES);
  if (packages === undefined) return;
  const { start, edit } = projectIn(t, packages, {
    "package.json": JSON.stringify({ private: true, type: "module" }),
    "next.config.mjs": `export default {
      serverExternalPackages: ["greenroom"],
      turbopack: { root: ${JSON.stringify(packages)} },
    };`,
    "actors.js": `
import { actor, setup } from "greenroom";
const counter = actor({ state: { n: 0 }, actions: { add: (c) => "one " + ++c.state.n } });
export const registry = setup({ use: { counter }, storage: "data", reload: "now" });`,
    "app/add/route.js": route("handle.add()"),
    "app/pid/route.js": route("String(process.pid)"),
    "app/api/rivet/[...path]/route.js": sample(
      "frameworks.md",
      "app/api/rivet/[...path]/route.ts",
    ).replace("request: Request", "request"),
    "app/layout.js": "export default ({ children }) => <html><body>{children}</body></html>;",
  });
  const next = `${packages}/node_modules/next/dist/bin/next`;
  const env = { NEXT_TELEMETRY_DISABLED: "1", NODE_ENV: "development" };
  const server = start([next, "dev", "-p", "0"], env);
  const port = await server.says(/localhost:(\d+)/);
  await server.says(/(Ready)/);

  const client = createClient(`http://localhost:${port}/api/rivet`);
  t.after(() => client.dispose());

  const answers = [await get(port, "add")];
  const pid = await get(port, "pid");
  await getUntil(port, "add", "two", answers, edit("actors.js", '"one "', '"two "'));
  await getUntil(port, "add", "three", answers, edit("actors.js", '"two "', '"three "'));

  const byClient = await client.counter.getOrCreate("a").add();
  await assert.rejects(client.counter.get("nobody").add(), { group: "actor", code: "not_found" });

  assert.equal(answers[0], "one 1");
  assert.match(byClient, new RegExp(`^three ${answers.length + 1}$`));
  const counted = answers.map((answer) => Number(answer.split(" ")[1]));
  assert.deepEqual(
    counted,
    [...answers.keys()].map((at) => at + 1),
  );
  assert.equal(await get(port, "pid"), pid);
});
