// The browser that tests drive, where there is one.

import { existsSync } from "node:fs";
import path from "node:path";
import { execute, StepFailed } from "./steps.mjs";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];
const FOLDERS = [...(process.env.PATH ?? "").split(path.delimiter), "/usr/bin"];

/** Why a test is skipped. */
export const NO_CHROMIUM = "Chromium is not installed";

/** The program of Chromium; undefined where there is none. */
export function chromiumHere() {
  const files = FOLDERS.flatMap((folder) => NAMES.map((name) => path.join(folder, name)));
  return files.find((file) => path.isAbsolute(file) && existsSync(file));
}

/**
 * Sees to Chromium, as one step: on CI it is installed where it is missing, or the step fails.
 * Elsewhere nothing is installed unasked, and the step says what to do.
 */
export async function chromium(steps) {
  const title = "Chromium";
  if (chromiumHere() !== undefined) return steps.step(title, async () => "is there");
  const install = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"];
  if (!process.env.CI) {
    return steps.skip(title, `tests in a browser are skipped; for them: ${install.join(" ")}`);
  }
  return steps.step(title, async (progress) => {
    if (process.getuid?.() !== 0) {
      throw new StepFailed("not installed, and only root can install Debian's package");
    }
    const env = { DEBIAN_FRONTEND: "noninteractive" };
    await execute(["apt-get", "update"], { env, progress });
    await execute(install, { env, progress });
    if (chromiumHere() === undefined) throw new StepFailed("installed, and not to be found");
    return "apt-get install";
  });
}
