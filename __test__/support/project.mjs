// A small project in which a development server runs, and the server.
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

import { platformHere } from "../../scripts/lib/packages.mjs";
import { inRoot } from "../../scripts/lib/paths.mjs";

/**
 * A project with `files` by their paths, gone after the test. It lies inside the folder of the
 * packages that it uses, where they are found, and has greenroom itself as npm would put it there: not
 * as a link, which bundlers take for a part of the project.
 */
export function projectIn(t, packages, files) {
  const folder = mkdtempSync(path.join(packages, "project-"));
  const servers = [];
  t.after(async () => {
    // Servers first: they write for as long as they live.
    await Promise.all(servers.map((server) => server.stop()));
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  for (const part of ["dist", "index.js", "package.json", platformHere().file]) {
    const to = path.join(folder, "node_modules", "greenroom", part);
    cpSync(inRoot(part), to, { recursive: true });
  }
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  return {
    /** Starts a server, which ends with the test. */
    start(args, env) {
      const server = new Server(folder, args, env);
      servers.push(server);
      return server;
    },
    /**
     * Edits a file as an author does. Gives how to save it once more: watchers miss what is saved
     * before they watch it, or within some 50 ms of an earlier save.
     */
    edit(name, from, to) {
      const file = path.join(folder, name);
      const content = readFileSync(file, "utf8");
      if (!content.includes(from)) throw new Error(`${name} has no ${from}`);
      const save = () => writeFileSync(file, content.replaceAll(from, to));
      save();
      return save;
    },
  };
}

const LIMIT_MS = 60_000;

/** After how long without an effect a file is saved once more. */
const SAVE_AGAIN_MS = 5_000;

/** A program that serves, and all that it starts. */
class Server {
  #output = "";
  #changed = () => {};
  #child;
  #ended;

  constructor(folder, args, env = {}) {
    this.#child = spawn(process.execPath, args, {
      cwd: folder,
      env: { ...process.env, NODE_OPTIONS: "", ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    this.#ended = new Promise((resolve) => this.#child.on("close", resolve));
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.on("data", (chunk) => {
        this.#output += chunk;
        this.#changed();
      });
    }
    this.#child.on("close", () => this.#changed());
  }

  /** Ends it together with all that it started. */
  async stop() {
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch (error) {
      // It ended by itself.
      if (error.code !== "ESRCH") throw error;
    }
    await this.#ended;
  }

  /** What `pattern` catches in the output when it is there for the `count`th time. */
  async says(pattern, count = 1, save = () => {}) {
    const found = () => [...this.#output.matchAll(new RegExp(pattern, "g"))][count - 1];
    const timer = setInterval(() => {
      save();
      this.#changed();
    }, SAVE_AGAIN_MS);
    const end = Date.now() + LIMIT_MS;
    while (found() === undefined) {
      if (Date.now() >= end || this.#child.exitCode !== null) {
        clearInterval(timer);
        throw new Error(`the server never said ${pattern}; it printed\n${this.#output}`);
      }
      await new Promise((resolve) => {
        this.#changed = resolve;
      });
    }
    clearInterval(timer);
    return found()[1];
  }
}

/** The text that a server answers with. */
export async function get(port, page = "") {
  const response = await fetch(`http://localhost:${port}/${page}`, {
    signal: AbortSignal.timeout(LIMIT_MS),
  });
  const body = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${body.slice(0, 2_000)}`);
  return body;
}

/**
 * The text that is answered once it begins with `start`; every answer is kept in `answers`. `save`
 * saves the edit that this waits for once more.
 */
export async function getUntil(port, page, start, answers, save) {
  const end = Date.now() + LIMIT_MS;
  let again = Date.now() + SAVE_AGAIN_MS;
  for (;;) {
    const answer = await get(port, page);
    answers.push(answer);
    if (answer.startsWith(start)) return answer;
    if (Date.now() > end) throw new Error(`no answer begins with ${start}: ${answers.join(", ")}`);
    if (Date.now() > again) {
      again += SAVE_AGAIN_MS;
      save();
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
