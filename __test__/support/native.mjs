// What the tests of the boundary share: an actor of plain numbers on the dispatch
// itself, folders, and scripts in processes of their own.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { bagOf, dispatch, NapiActorFactory } from "greenroom/native";

export const root = fileURLToPath(new URL("../../", import.meta.url));

export const none = new Uint8Array(0);

export const text = (bytes) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();

export const bytes = (value) => Buffer.from(String(value));

/** A folder that is gone after the test. */
export function folder(t) {
  const dir = mkdtempSync(join(tmpdir(), "greenroom-test-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/**
 * A type of actors whose state is one number in `bag.extension.n`. `actions` are
 * `(bag, args, payload) => value`; a value that is no bytes is sent as text.
 */
export function numbers(actions = {}, config = {}, callbacks = {}) {
  const wrapped = {};
  for (const [name, action] of Object.entries({ add, get, ...actions })) {
    wrapped[name] = async (_, payload) => {
      const value = await action(payload.bag, text(payload.args), payload);
      return value === undefined || value instanceof Uint8Array ? value : bytes(value);
    };
  }
  return new NapiActorFactory(
    {
      createState(_, { bag }) {
        bag.extension = { n: 0 };
        return bytes(0);
      },
      createVars(_, { bag, ctx }) {
        const state = ctx.state();
        bag.extension ??= { n: state.length === 0 ? 0 : Number(text(state)) };
      },
      encodeState: (bag) => bytes(bag.extension.n),
      actions: wrapped,
      ...callbacks,
    },
    { durability: "reply", hasState: true, ...config },
  );
}

export function add(bag, args) {
  bag.extension.n += Number(args || 1);
  dispatch.changed(bag);
  return bag.extension.n;
}

export const get = (bag) => bag.extension.n;

/** An open host that shuts down after the test. */
export async function opened(t, types, options = {}) {
  const host = await dispatch.openHost(options);
  t.after(() => host.shutdown(200));
  for (const [name, factory] of Object.entries(types)) host.register(name, factory);
  return host;
}

/** A target by name and key, created by its first call. */
export const actor = (name, ...key) => ({ name, key, create: true });

/** Wakes an actor and gives its bag, once calls may go to it past nobody who waits. */
export async function awake(host, target, action = "get") {
  await host.submit(target, action, none, 2);
  await until(() => host.live(target) !== undefined, "the actor to be live here");
  return host.live(target);
}

export { bagOf, dispatch, NapiActorFactory };

/** A turn of the event loop. */
export const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Waits until `condition` holds, at most five seconds. */
export async function until(condition, what = "the condition") {
  const end = Date.now() + 5_000;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/**
 * Runs a script in a process of its own, in the project's folder, and resolves when
 * it has ended. `meet` is called with the process as soon as it prints "ready".
 */
export function script(t, source, { args = [], meet, timeoutMs = 30_000 } = {}) {
  const dir = folder(t);
  const file = join(dir, "script.mjs");
  const prelude = `import * as h from ${JSON.stringify(new URL("native.mjs", import.meta.url).href)};\n`;
  writeFileSync(file, prelude + source);
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [file, ...args], {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(
        new Error(
          `the script did not end; it printed ${JSON.stringify(out)} and ${JSON.stringify(err)}`,
        ),
      );
    }, timeoutMs);
    let out = "";
    let err = "";
    let met = false;
    child.stdout.on("data", (chunk) => {
      out += chunk;
      if (!met && meet !== undefined && out.includes("ready")) {
        met = true;
        meet(child);
      }
    });
    child.stderr.on("data", (chunk) => {
      err += chunk;
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, out, err });
    });
  });
}
