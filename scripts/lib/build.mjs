// What must be there before anything can run: npm packages, the native addon, the compiled
// TypeScript. Each is made only when it is missing or stale.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { writeBrowserModules } from "./browser.mjs";
import { digest, filesUnder, isFresh, stamp, unstamp } from "./fresh.mjs";
import { writeModule } from "./modules.mjs";
import { inRoot, npm, ROOT, tool } from "./paths.mjs";
import { execute, StepFailed } from "./steps.mjs";

const UP_TO_DATE = "up to date";
const NODE_AT_LEAST = [20, 17];

/** The loader and the types of the native classes; committed, and made by the native build. */
export const GENERATED = ["index.js", "index.d.ts"];

/** What can be imported of the package; each as an ES module too. */
const ENTRIES = [
  "index",
  "client/index",
  "db/index",
  "db/drizzle/index",
  "native/index",
  "testing",
];

/**
 * Files of npm packages that are published inside `dist/`. As a dependency, cbor-x would bring a
 * native part that has an install script and is never used here.
 */
const BUNDLED = [
  ["cbor-x/dist/index-no-eval.cjs", "codec/vendor/cbor-x.cjs"],
  ["cbor-x/LICENSE", "codec/vendor/cbor-x.LICENSE"],
];

function nodeIsRecentEnough() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  return major > NODE_AT_LEAST[0] || (major === NODE_AT_LEAST[0] && minor >= NODE_AT_LEAST[1]);
}

const readJson = (file) => JSON.parse(readFileSync(file, "utf8"));

/**
 * Whether node_modules of a folder holds exactly what its lock names. npm leaves a record of what
 * it installed; an optional package may be missing, since most are made for other platforms.
 */
function isInstalled(folder) {
  const record = path.join(folder, "node_modules", ".package-lock.json");
  if (!existsSync(record)) return false;
  const lock = readJson(path.join(folder, "package-lock.json"));
  const { "": _root, ...wanted } = lock.packages;
  const installed = readJson(record).packages;
  const asWanted = ([where, entry]) => {
    const found = installed[where];
    if (!found) return entry.optional === true;
    return found.integrity === entry.integrity && existsSync(path.join(folder, where));
  };
  return (
    Object.entries(wanted).every(asWanted) && Object.keys(installed).every((it) => it in wanted)
  );
}

/** Installs the npm packages of the lock. */
export function install(steps) {
  return steps.step("npm packages", async (progress) => {
    if (!nodeIsRecentEnough()) {
      throw new StepFailed(
        `Node.js ${NODE_AT_LEAST.join(".")} or newer is needed, this is ${process.version}`,
      );
    }
    return installIn(ROOT, [], progress);
  });
}

/** Installs the npm packages of the lock of a folder, with more arguments for npm. */
export async function installIn(folder, more, progress) {
  if (isInstalled(folder)) return UP_TO_DATE;
  const command = [...npm(), "ci", "--no-audit", "--no-fund", ...more];
  await execute(command, { cwd: folder, progress });
  return "npm ci";
}

const nativeOutputs = () => [
  ...readdirSync(ROOT).filter((name) => /^greenroom\..*\.node$/.test(name)),
  ...GENERATED,
];

/** What of package.json ends up in the addon's loader. */
function nativeSettings() {
  const { name, version, napi } = readJson(inRoot("package.json"));
  return JSON.stringify({ name, version, napi });
}

const nativeInputs = (profile) =>
  digest(
    filesUnder("src", "build.rs", "Cargo.toml", "Cargo.lock", ".cargo"),
    nativeSettings(),
    profile,
    process.env.RUSTFLAGS ?? "",
  );

const hasAddon = () => nativeOutputs().length > GENERATED.length;

/**
 * Builds the native addon. `profile` is `dev` (quick to build, the everyday one), `release` (what
 * is published and measured), or `any`: a fresh one of either will do, and dev is built otherwise.
 */
export function native(steps, profile) {
  return steps.step(`native addon (${profile === "any" ? "dev" : profile})`, async (progress) => {
    const outputs = () => digest(filesUnder(...nativeOutputs()));
    const acceptable = profile === "any" ? ["dev", "release"] : [profile];
    const found = acceptable.find(
      (it) => hasAddon() && isFresh("native", nativeInputs(it), outputs()),
    );
    if (found)
      return found === "release" && profile === "any" ? `${UP_TO_DATE}: release` : UP_TO_DATE;
    const built = profile === "any" ? "dev" : profile;
    const inputs = nativeInputs(built);
    unstamp("native");
    const release = built === "release" ? ["--release"] : [];
    const command = [
      ...tool("@napi-rs/cli", "napi"),
      "build",
      "--platform",
      ...release,
      "--dts",
      "index.d.ts",
    ];
    await execute(command, { cwd: ROOT, progress });
    if (!hasAddon()) throw new StepFailed("the build left no greenroom.*.node");
    stamp("native", inputs, outputs());
    return "";
  });
}

/** Copies a file, without naming a source map that is not copied with it. */
function bundle(from, to) {
  mkdirSync(path.dirname(to), { recursive: true });
  writeFileSync(to, readFileSync(from, "utf8").replace(/^\/\/# sourceMappingURL=.*\n?/m, ""));
}

/** Compiles `ts/` to `dist/`, and puts what is bundled there. */
export function typescript(steps) {
  return steps.step("TypeScript", async (progress) => {
    const inputs = digest(
      filesUnder(
        "ts",
        "tsconfig.json",
        "index.d.ts",
        "scripts/lib/build.mjs",
        "scripts/lib/browser.mjs",
        "scripts/lib/modules.mjs",
        "package-lock.json",
      ),
    );
    const outputs = () => digest(filesUnder("dist"));
    if (existsSync(inRoot("dist")) && isFresh("ts", inputs, outputs())) return UP_TO_DATE;
    unstamp("ts");
    // What a source that is gone once gave must not be found any more.
    rmSync(inRoot("dist"), { recursive: true, force: true });
    await execute([...tool("typescript", "tsc"), "-p", "tsconfig.json"], { cwd: ROOT, progress });
    for (const entry of ENTRIES) writeModule(inRoot("dist", entry));
    writeBrowserModules("client/index");
    for (const [from, to] of BUNDLED) bundle(inRoot("node_modules", from), inRoot("dist", to));
    stamp("ts", inputs, outputs());
    return "";
  });
}

/** Everything that a program importing `greenroom` needs. */
export async function build(steps, profile) {
  return (await install(steps)) && (await native(steps, profile)) && (await typescript(steps));
}
