// What can be read off the sources and the tables.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, it } from "node:test";

import { root } from "./support/native.mjs";

const require = createRequire(import.meta.url);
const native = require("../index.js");
const { FIELDS, Kind } = require("../dist/native/jobs.js");

const sources = readdirSync(join(root, "src/node"), { recursive: true })
  .filter((name) => name.endsWith(".rs"))
  .map((name) => [name, readFileSync(join(root, "src/node", name), "utf8")]);

/** The attributes `#[napi…]`, each with the item that follows. */
function exported(source) {
  const found = [];
  for (const match of source.matchAll(
    /#\[napi\b([^\]]*)\]\s*((?:#\[[^\]]*\]\s*)*)([^{;]*)[{;]([^\n]*\n[^\n]*)/g,
  )) {
    found.push({ attribute: match[1], item: match[3].trim(), body: match[4] });
  }
  return found;
}

describe("the sources of the boundary", () => {
  it("guard every exported function against panics", () => {
    let functions = 0;
    for (const [name, source] of sources) {
      for (const { attribute, item } of exported(source)) {
        if (!/\bfn\b/.test(item)) continue;
        functions += 1;
        assert.match(attribute, /\bcatch_unwind\b/, `${name}: ${item}`);
      }
    }
    assert.ok(functions > 40, `found only ${functions} exported functions`);
  });

  it("let a test make every exported function panic", () => {
    for (const [name, source] of sources) {
      for (const { item, body } of exported(source)) {
        if (!/\bfn\b/.test(item) || /fn panic_next\b/.test(item)) continue;
        assert.match(body, /trip\(\);/, `${name}: ${item}`);
      }
    }
  });

  it("have no method that borrows its object mutably, and no async function", () => {
    for (const [name, source] of sources) {
      for (const { item } of exported(source)) {
        assert.doesNotMatch(item, /&mut self|async fn/, `${name}: ${item}`);
      }
    }
  });

  it("install no signal handler and print nothing", () => {
    for (const [name, source] of sources) {
      assert.doesNotMatch(source, /\bsignal::|sigaction|println!|eprintln!|print!\(|dbg!/, name);
    }
  });

  it("are built so that a panic can be caught", () => {
    const cargo = readFileSync(join(root, "Cargo.toml"), "utf8");

    assert.doesNotMatch(cargo, /panic\s*=\s*["']abort/);
  });
});

describe("the kinds of jobs", () => {
  it("are the same on both sides", () => {
    const rust = JSON.parse(native.__jobFields());
    const here = Object.entries(Kind)
      .sort(([, a], [, b]) => a - b)
      .map(([name, kind]) => [name, FIELDS[kind]]);

    assert.deepEqual(here, rust);
    assert.deepEqual(
      Object.values(Kind).sort((a, b) => a - b),
      rust.map((_, place) => place + 1),
    );
  });
});

describe("the exports", () => {
  it("can be seen by an import from an ES module", async () => {
    const imported = await import("greenroom/native");

    for (const name of [
      "ActorContext",
      "CancellationToken",
      "CoreRegistry",
      "NapiActorFactory",
      "dispatch",
    ]) {
      assert.ok(name in imported, name);
    }
  });

  it("are native classes", () => {
    for (const name of ["ActorContext", "CancellationToken", "CoreRegistry", "NapiActorFactory"]) {
      assert.match(Function.prototype.toString.call(native[name]), /native code/, name);
    }
  });
});
