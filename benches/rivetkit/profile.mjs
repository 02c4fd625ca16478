// npm run bench:rivetkit -- --profile: where the time of the JavaScript thread goes in an application of
// RivetKit on greenroom, with 64 actions in flight over 100 actors.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/** Whose code a frame of the profile is, by where it lies. */
function ownerOf({ functionName, url }) {
  if (functionName === "(idle)") return "idle";
  if (functionName === "(garbage collector)") return "garbage collection";
  if (/node_modules\/(rivetkit|@rivetkit)\//.test(url)) return "rivetkit";
  if (url.includes("node_modules/")) return "packages that rivetkit uses";
  if (url.includes("/dist/")) return "greenroom, its native side included";
  if (url === "" || url.startsWith("node:")) return "Node.js";
  return "the application";
}

/** Microseconds by owner. */
function sharesOf(profile) {
  const owners = new Map(profile.nodes.map(({ id, callFrame }) => [id, ownerOf(callFrame)]));
  const shares = new Map();
  profile.samples.forEach((id, at) => {
    const owner = owners.get(id);
    shares.set(owner, (shares.get(owner) ?? 0) + profile.timeDeltas[at]);
  });
  return shares;
}

/** Runs the application in `folder` under load and prints its profile. */
export async function profile({ node, folder, args, env, port, seconds }) {
  const work = mkdtempSync(path.join(tmpdir(), "rivetkit-profile-"));
  const measured = ["--cpu-prof", "--cpu-prof-dir", work, ...args, path.join(folder, "app.mjs")];
  const app = spawn(node, measured, {
    cwd: folder,
    stdio: ["ignore", 2, 2],
    env: { ...env, RIVETKIT_STORAGE_PATH: path.join(work, "store") },
  });
  try {
    await reachable(port);
    const crowd = spawn(node, [path.join(folder, "crowd.mjs"), String(port), String(seconds)], {
      cwd: folder,
      stdio: ["ignore", "pipe", 2],
    });
    const [rate] = await once(crowd.stdout, "data");
    app.kill("SIGINT");
    await once(app, "exit");
    const [file] = readdirSync(work).filter((name) => name.endsWith(".cpuprofile"));
    print(sharesOf(JSON.parse(readFileSync(path.join(work, file), "utf8"))), Number(rate));
  } finally {
    app.kill("SIGKILL");
    rmSync(work, { recursive: true, force: true });
  }
}

async function reachable(port) {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined);
    if (answer?.ok) return;
    await pause(20);
  }
}

function print(shares, rate) {
  const busy = [...shares].filter(([owner]) => owner !== "idle");
  const sum = busy.reduce((before, [, time]) => before + time, 0);
  process.stdout.write(`${rate} calls a second\n\n| code | part of the time that is not idle |\n`);
  process.stdout.write("| --- | --- |\n");
  for (const [owner, time] of busy.sort((a, b) => b[1] - a[1])) {
    process.stdout.write(`| ${owner} | ${((100 * time) / sum).toFixed(0)} % |\n`);
  }
}
