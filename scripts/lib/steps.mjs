// Runs the steps of a command one after the other, one line for each, and remembers how they went.
//
// 1. A step that succeeds takes one line (and the closing lines it asks for); a step that fails
//    shows all it printed.
// 2. A step in progress can be watched: a terminal sees the last line it printed, a log gets a
//    sign of life every half minute.
// 3. A step ends: at its time limit its whole process group is killed, and likewise when the
//    person presses Ctrl-C.

import { spawn } from "node:child_process";
import { performance } from "node:perf_hooks";

const SIGN_OF_LIFE_MS = 30_000;
const TITLE_WIDTH = 44;
const DEFAULT_LIMIT_MS = 30 * 60_000;

const running = new Set();

/** Ends a child and, where the platform has process groups, all that it started. */
function end(child) {
  try {
    if (process.platform === "win32") child.kill("SIGKILL");
    else process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    // It ended by itself in this very moment.
    if (error.code !== "ESRCH") throw error;
  }
}

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
]) {
  process.on(signal, () => {
    for (const child of running) end(child);
    process.stdout.write("\n");
    process.exit(code);
  });
}

const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`.padStart(8);

/** What a step threw to say that it failed; anything else thrown is a fault of the script. */
export class StepFailed extends Error {
  constructor(message, output = "") {
    super(message);
    this.output = output;
  }
}

export class Steps {
  /** `{title, ms, result: "ok" | "failed" | "skipped" | "not run", note}` in order. */
  results = [];
  #terminal = process.stdout.isTTY === true;

  get failed() {
    return this.results.some((step) => step.result === "failed");
  }

  /**
   * Runs one step. `body(progress)` does the work and may return a note for the line; `progress`
   * takes the latest line of output. Returns whether it succeeded.
   */
  async step(title, body) {
    const started = performance.now();
    let latest = "";
    const draw = () => {
      const line = `  ...     ${title.padEnd(TITLE_WIDTH)}${seconds(performance.now() - started)}`;
      if (!this.#terminal) process.stdout.write(`${line}  ${latest}\n`);
      else
        process.stdout.write(
          `\r\x1b[K${`${line}  ${latest}`.slice(0, process.stdout.columns - 1)}`,
        );
    };
    const timer = setInterval(draw, this.#terminal ? 200 : SIGN_OF_LIFE_MS);
    try {
      const outcome = await body((line) => {
        latest = line.trim();
      });
      this.#finish({ title, ms: performance.now() - started, result: "ok", ...asOutcome(outcome) });
      return true;
    } catch (error) {
      if (!(error instanceof StepFailed)) throw error;
      this.#finish({
        title,
        ms: performance.now() - started,
        result: "failed",
        note: error.message,
        output: error.output,
      });
      return false;
    } finally {
      clearInterval(timer);
    }
  }

  /** Notes a step that was left out, and why. */
  skip(title, note, result = "skipped") {
    this.#finish({ title, ms: 0, result, note });
  }

  #finish({ output = "", closing = "", ...step }) {
    this.results.push(step);
    if (this.#terminal) process.stdout.write("\r\x1b[K");
    if (output) process.stdout.write(`${output.trimEnd()}\n`);
    if (closing) process.stdout.write(`${closing.trimEnd()}\n`);
    process.stdout.write(`${row(step)}\n`);
  }

  /** The table of all steps; the last thing that a person reads. */
  summary() {
    const total = this.results.reduce((sum, step) => sum + step.ms, 0);
    const lines = this.results.map(row);
    return [...lines, row({ result: this.failed ? "failed" : "ok", title: "all", ms: total })].join(
      "\n",
    );
  }
}

const asOutcome = (outcome) => (typeof outcome === "string" ? { note: outcome } : (outcome ?? {}));

function row({ result, title, ms, note }) {
  const mark = { ok: "ok", failed: "FAILED", skipped: "skipped", "not run": "not run" }[result];
  const line = `  ${mark.padEnd(8)}${title.padEnd(TITLE_WIDTH)}${seconds(ms)}`;
  return note ? `${line}  ${note}` : line;
}

/**
 * Runs a command to its end and resolves with what it printed (both streams, as they came).
 *
 * Rejects with {@link StepFailed} when it cannot be started, ends with another code than 0, or is
 * still running after `limitMs`.
 */
export function execute(
  [file, ...args],
  { env = {}, cwd, limitMs = DEFAULT_LIMIT_MS, progress } = {},
) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: process.platform !== "win32",
      shell: file.endsWith(".cmd"),
    });
    running.add(child);
    const chunks = [];
    let unfinished = "";
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      end(child);
    }, limitMs);
    const take = (chunk) => {
      chunks.push(chunk);
      const lines = (unfinished + chunk.toString("utf8")).split("\n");
      unfinished = lines.pop();
      const line = lines.findLast((it) => it.trim() !== "");
      if (line) progress?.(line);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    const settle = (failure) => {
      clearTimeout(timer);
      running.delete(child);
      const output = Buffer.concat(chunks).toString("utf8");
      if (failure === null) resolve(output);
      else reject(new StepFailed(failure, output));
    };
    child.on("error", (error) => {
      settle(error.code === "ENOENT" ? `${file} is not installed` : error.message);
    });
    child.on("close", (code, signal) => {
      if (timedOut) settle(`still running after ${limitMs / 1000} s`);
      else if (signal) settle(`ended by ${signal}`);
      else settle(code === 0 ? null : `exit code ${code}`);
    });
  });
}
