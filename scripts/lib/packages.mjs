// The packages that are published: one for each platform with its addon, and the one that people
// install, which has none and names the others as optional dependencies.
//
// The optional dependencies are written into the packed manifest only. In the repository they would
// name versions that are not published yet, and no lock file could be made or followed.

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { inRoot, npm } from "./paths.mjs";
import { execute, StepFailed } from "./steps.mjs";

const manifest = () => JSON.parse(readFileSync(inRoot("package.json"), "utf8"));

/** What npm, Node.js and Rust call the parts of a target. */
const CPUS = { x86_64: "x64", aarch64: "arm64" };
const SYSTEMS = { linux: "linux", apple: "darwin", pc: "win32", unknown: undefined };

/** A platform, by its target: `{target, name, os, cpu, libc, abi}`. */
function platform(target) {
  const [machine, vendor, system, abi] = target.split("-");
  const os = SYSTEMS[vendor] ?? system;
  const cpu = CPUS[machine];
  const libc = { gnu: "glibc", musl: "musl" }[os === "linux" ? abi : ""];
  const name = [os, cpu, abi].filter(Boolean).join("-");
  return { target, name, os, cpu, libc, file: `${manifest().napi.binaryName}.${name}.node` };
}

/** All platforms that have a package. */
export const platforms = () => manifest().napi.targets.map(platform);

/** The name of the package of a platform. */
export const packageOf = ({ name }) => `${manifest().napi.packageName}-${name}`;

function emptied(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return folder;
}

function writeManifest(folder, content) {
  writeFileSync(path.join(folder, "package.json"), `${JSON.stringify(content, null, 2)}\n`);
}

/** Lays out the package that people install. */
export function layOutMain(folder) {
  emptied(folder);
  const { devDependencies, scripts, overrides, ...kept } = manifest();
  const files = kept.files.filter((entry) => !entry.endsWith(".node"));
  for (const entry of [...files, "README.md", "LICENSE"]) {
    if (!existsSync(inRoot(entry))) throw new StepFailed(`${entry} is missing`);
    cpSync(inRoot(entry), path.join(folder, entry), { recursive: true });
  }
  const addons = platforms().map((each) => [packageOf(each), kept.version]);
  writeManifest(folder, { ...kept, files, optionalDependencies: Object.fromEntries(addons) });
}

/** Lays out the package of a platform, with its addon from `file`. */
export function layOutPlatform(folder, each, file) {
  emptied(folder);
  const { version, description, license, engines, binaryName } = {
    ...manifest(),
    ...manifest().napi,
  };
  const name = packageOf(each);
  cpSync(file, path.join(folder, each.file));
  cpSync(inRoot("LICENSE"), path.join(folder, "LICENSE"));
  const readme = `# ${name}\n\nThe native addon of \`${binaryName}\` for ${each.target}. Install \`${binaryName}\` instead.\n`;
  writeFileSync(path.join(folder, "README.md"), readme);
  writeManifest(folder, {
    name,
    version,
    description: `${description} (${each.target})`,
    license,
    engines,
    main: each.file,
    files: [each.file],
    os: [each.os],
    cpu: [each.cpu],
    ...(each.libc === undefined ? {} : { libc: [each.libc] }),
  });
}

/** Lays out the package that takes the place of RivetKit's native module; it needs the other one. */
export function layOutContract(folder) {
  emptied(folder);
  const from = inRoot("packages", "rivetkit-napi");
  const content = JSON.parse(readFileSync(path.join(from, "package.json"), "utf8"));
  for (const entry of [...content.files, "README.md"]) {
    cpSync(path.join(from, entry), path.join(folder, entry));
  }
  cpSync(inRoot("LICENSE"), path.join(folder, "LICENSE"));
  const { name, version } = manifest();
  writeManifest(folder, { ...content, version, dependencies: { [name]: version } });
}

/** Packs a folder as npm does; resolves with the path of the tarball. */
export async function pack(folder, destination) {
  mkdirSync(destination, { recursive: true });
  const command = [...npm(), "pack", "--json", "--pack-destination", destination];
  const output = await execute(command, { cwd: folder, env: { npm_config_loglevel: "error" } });
  const [{ filename }] = JSON.parse(output);
  // A scope is a folder in the name of a package and none in that of its tarball.
  return path.join(destination, filename.replace(/^@/, "").replace("/", "-"));
}

/**
 * The newest glibc whose symbols an addon asks for, such as `2.17`: it loads there and on anything
 * newer. Undefined for one that asks for none.
 */
export function glibcFloor(file) {
  const names = readFileSync(file, "latin1").matchAll(/GLIBC_2\.(\d+)/g);
  const minors = [...names].map(([, minor]) => Number(minor));
  return minors.length === 0 ? undefined : `2.${Math.max(...minors)}`;
}

/** The platform of this machine. */
export function platformHere() {
  const { platform: os, arch: cpu } = process;
  const glibc = process.report.getReport().header.glibcVersionRuntime;
  const libc = os === "linux" ? (glibc === undefined ? "musl" : "glibc") : undefined;
  return platforms().find((each) => each.os === os && each.cpu === cpu && each.libc === libc);
}
