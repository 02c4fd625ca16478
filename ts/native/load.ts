/**
 * Loads the addon before anything else asks for it, to say what is wrong where that fails.
 *
 * `index.js` finds the addon. It is generated, and its error names neither the platform nor what was
 * tried; what it knows is in the chain of causes.
 */
import { readFileSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { RivetError } from "./errors.js";

/** The folder of the package. */
const ROOT = resolve(__dirname, "..", "..");

/** How Linux (for what a library lacks), macOS and then all of them name a file that does not load. */
const FILE_NAMED = [/required by (.+\.node)\)/, /^dlopen\((.+?\.node)\b/, /^(.+?\.node)\b/];

/** One way in which the addon was looked for. */
interface Attempt {
  readonly path: string;
  readonly reason: string;
}

/** What it is that runs here. */
interface Machine {
  readonly platform: string;
  readonly arch: string;
  /** Such as `glibc 2.36` or `musl`; absent where there is no choice. */
  readonly libc?: string;
  readonly node: string;
}

try {
  require("../../index.js");
} catch (thrown) {
  throw explained(thrown);
}

function explained(thrown: unknown): RivetError {
  const machine = thisMachine();
  const tried = causesOf(thrown).map(attempt);
  const { platform, arch, libc, node } = machine;
  const where = [platform, arch, libc && `(${libc})`].filter(Boolean).join(" ");
  const lines = [
    `the native addon of greenroom could not be loaded on ${where} with Node.js ${node}`,
    ...tried.map(({ path, reason }) => `  tried ${path}: ${reason}`),
    ...advice(tried, machine).map((line) => `  ${line}`),
  ];
  return new RivetError("addon", "not_loadable", lines.join("\n"), {
    metadata: { ...machine, tried },
    cause: thrown,
  });
}

/** The failures of all attempts, in their order. */
function causesOf(thrown: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let at = thrown; at !== undefined && at !== null && !chain.includes(at); at = causeOf(at)) {
    chain.push(at);
  }
  // The first one only says that all of them failed; the chain begins with the last.
  return chain.length > 1 ? chain.slice(1).reverse() : chain;
}

function causeOf(error: unknown): unknown {
  return typeof error === "object" ? (error as { cause?: unknown }).cause : undefined;
}

function attempt(failure: unknown): Attempt {
  const text = failure instanceof Error ? failure.message : String(failure);
  // What follows the first line is who required it: these very files.
  const reason = text.split("\n", 1)[0] ?? "";
  const missing = /Cannot find module '([^']+)'/.exec(reason)?.[1];
  if (missing !== undefined && (missing.startsWith(".") || isAbsolute(missing)))
    return { path: resolve(ROOT, missing), reason: "there is no such file" };
  if (missing !== undefined) return { path: missing, reason: "it is not installed" };
  const file = FILE_NAMED.map((pattern) => pattern.exec(reason)?.[1]).find(Boolean);
  return { path: file ?? "to load it", reason };
}

function advice(tried: readonly Attempt[], { platform, arch, libc }: Machine): string[] {
  const override = process.env.NAPI_RS_NATIVE_LIBRARY_PATH;
  if (override)
    return ["NAPI_RS_NATIVE_LIBRARY_PATH names what does not load: correct or unset it"];
  const { name, optionalDependencies, napi } = readManifest();
  const asked = tried.map(({ path }) => path).filter((path) => !path.includes("wasi"));
  const wanted = asked.find((path) => path.startsWith(`${napi.packageName}-`));
  const offered = Object.keys(optionalDependencies ?? {});
  const reasons = tried.map(({ reason }) => reason).join("\n");
  const floor = /GLIBC_([\d.]+)' not found/.exec(reasons)?.[1];
  if (floor !== undefined) {
    return [`it needs glibc ${floor} or newer, and this is ${libc ?? "older"}: use a newer system`];
  }
  if (offered.length > 0 && (wanted === undefined || !offered.includes(wanted))) {
    return [`there is no prebuilt addon for ${platform} ${arch}: build one from the repository`];
  }
  const broken = tried.some(({ path, reason }) => reason.includes(path));
  if (broken) return [`the file is damaged or made for another platform: install ${name} again`];
  // What is published names its addons; a clone has built none yet.
  if (offered.length === 0) return ["in a clone of the repository: npm run build"];
  return [
    `install ${name} on the platform where it runs, with optional dependencies (no --omit=optional);`,
    "where a lock file was made on another platform, remove it and node_modules, and install again;",
    `where the program is bundled, leave ${name} external`,
  ];
}

function thisMachine(): Machine {
  const { platform, arch, version: node } = process;
  if (platform !== "linux") return { platform, arch, node };
  return { platform, arch, libc: libcHere(), node };
}

function libcHere(): string {
  // Other runtimes than Node.js may have none.
  const report = process.report as NodeJS.ProcessReport | undefined;
  if (report === undefined) return "unknown libc";
  // It looks at network interfaces otherwise, which may take seconds.
  (report as { excludeNetwork?: boolean }).excludeNetwork = true;
  const { header } = report.getReport() as { header?: { glibcVersionRuntime?: string } };
  const version = header?.glibcVersionRuntime;
  return version === undefined ? "musl" : `glibc ${version}`;
}

interface Manifest {
  readonly name: string;
  readonly napi: { readonly packageName: string };
  /** Only in a published package. */
  readonly optionalDependencies?: Record<string, string>;
}

function readManifest(): Manifest {
  return JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;
}
