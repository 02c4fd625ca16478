// npm run release [-- --addons FOLDER]: makes the packages that are published, in
// target/release-packages/.
//
// This machine builds the addon of its own platform, and that of others whose Rust target is
// installed. `--addons` adds what others built, as `greenroom.<platform>.node`. CONTRIBUTING.md says
// which machine builds what. Nothing is published here.

import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { install, native, typescript } from "./lib/build.mjs";
import {
  glibcFloor,
  layOutContract,
  layOutMain,
  layOutPlatform,
  pack,
  packageOf,
  platformHere,
  platforms,
} from "./lib/packages.mjs";
import { inRoot, ROOT, tool } from "./lib/paths.mjs";
import { execute, StepFailed, Steps } from "./lib/steps.mjs";

const { values } = parseArgs({ options: { addons: { type: "string" } } });
const OUT = inRoot("target", "release-packages");

const steps = new Steps();
const built = (await install(steps)) && (await native(steps, "release"));
if (!built || !(await typescript(steps))) process.exit(1);

const targets = await installedTargets();
const here = platformHere();
const rows = [];
let packed = true;
rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
for (const each of platforms()) {
  const { file, reason } = await addonOf(each);
  if (file === undefined) {
    rows.push([packageOf(each), `not here: ${reason}`, "", ""]);
    continue;
  }
  const made = await packOne(packageOf(each), (folder) => layOutPlatform(folder, each, file));
  packed &&= made !== undefined;
  const floor = each.libc === "glibc" ? `glibc ${glibcFloor(file)}` : "";
  rows.push([packageOf(each), made === undefined ? "failed" : "packed", mebibytes(file), floor]);
}
const main = await packOne("greenroom", layOutMain);
packed &&= main !== undefined;
const contract = await packOne("@greenroom/rivetkit-napi", layOutContract);
packed &&= contract !== undefined;
rows.push([
  "@greenroom/rivetkit-napi",
  contract === undefined ? "failed" : "packed",
  contract ? mebibytes(contract) : "",
  "",
]);
rows.push(["greenroom", main === undefined ? "failed" : "packed", main ? mebibytes(main) : "", ""]);

console.log(`\n${table([["package", "", "size", "needs"], ...rows])}`);
console.log(
  `\nin ${path.relative(ROOT, OUT)}; publish those of platforms first, then greenroom, then the one that needs it`,
);
process.exitCode = packed ? 0 : 1;

/** The addon of a platform, or why there is none. */
async function addonOf(each) {
  const given = values.addons && path.resolve(values.addons, each.file);
  if (given && existsSync(given)) return { file: given };
  if (each.name === here?.name) return { file: inRoot(each.file) };
  if (each.os !== process.platform) return { reason: `${each.os} is built on ${each.os}` };
  if (!targets.includes(each.target)) return { reason: `Rust target ${each.target} is missing` };
  const output = path.join(OUT, "addons");
  const napi = [...tool("@napi-rs/cli", "napi"), "build", "--platform", "--release", "--no-js"];
  const command = [...napi, "--target", each.target, "--output-dir", output];
  const done = await steps.step(`native addon, ${each.name}`, (progress) =>
    execute(command, { cwd: ROOT, progress }).then(() => ""),
  );
  return done ? { file: path.join(output, each.file) } : { reason: "the build failed, see above" };
}

/** The Rust targets that are installed. */
async function installedTargets() {
  try {
    const output = await execute(["rustup", "target", "list", "--installed"]);
    return output.split("\n").map((line) => line.trim());
  } catch (error) {
    // A toolchain that is not of rustup has one target.
    if (error instanceof StepFailed) return [];
    throw error;
  }
}

/** Lays out and packs one package; gives its tarball. */
async function packOne(name, layOut) {
  const folder = path.join(OUT, "folders", name.replace("/", "-"));
  let tarball;
  await steps.step(`pack ${name}`, async () => {
    layOut(folder);
    tarball = await pack(folder, OUT);
    return path.basename(tarball);
  });
  return tarball;
}

function mebibytes(file) {
  return `${(statSync(file).size / 2 ** 20).toFixed(1)} MiB`;
}

function table(lines) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((row) => row[column].length)));
  const line = (row) => `  ${row.map((cell, at) => cell.padEnd(widths[at])).join("  ")}`.trimEnd();
  return lines.map(line).join("\n");
}
