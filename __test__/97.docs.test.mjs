import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { unmarked } from "../scripts/lib/fences.mjs";
import { filesUnder } from "../scripts/lib/fresh.mjs";
import { anchorsOf, brokenLinks, linksOf } from "../scripts/lib/links.mjs";
import { inRoot } from "../scripts/lib/paths.mjs";

const isPage = (file) => file.endsWith(".md");
const pages = filesUnder(
  "README.md",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "docs",
).filter(isPage);

describe("the links of a page", () => {
  let folder;
  const page = (name, ...lines) => {
    const file = path.join(folder, name);
    writeFileSync(file, lines.join("\n"));
    return file;
  };
  before(() => {
    folder = mkdtempSync(path.join(tmpdir(), "greenroom-links-"));
  });
  after(() => rmSync(folder, { recursive: true }));

  it("are broken when the file or the heading is missing, by line", () => {
    page("other.md", "# Two words", "## What is `a.b`?");
    const file = page(
      "page.md",
      "[gone](gone.md) and [other](other.md)",
      "[heading](other.md#two-words) [code](other.md#what-is-ab)",
      "[no heading](other.md#three-words) [own](#nowhere)",
      "[definition]: missing.md",
    );

    assert.deepEqual(brokenLinks(file), [
      `${file}:1: there is no gone.md`,
      `${file}:3: other.md#three-words names no heading`,
      `${file}:3: #nowhere names no heading`,
      `${file}:4: there is no missing.md`,
    ]);
  });

  it("are not looked for in code or in the web", () => {
    const file = page(
      "code.md",
      "`[a](b)` [site](https://example.com/x) [mail](mailto:a@example.com)",
      "```ts run",
      "call[0](gone);",
      "# no heading",
      "```",
    );

    assert.deepEqual(brokenLinks(file), []);
    assert.deepEqual(anchorsOf(readFileSync(file, "utf8")), []);
    assert.equal(linksOf("[a [b] c](d.md)")[0].target, "d.md");
  });

  it("tell headings of the same words apart", () => {
    assert.deepEqual(anchorsOf("# Same\n## Same\n"), ["same", "same-1"]);
  });
});

describe("the documents", () => {
  it("have no broken link", () => {
    assert.deepEqual(pages.flatMap(brokenLinks), []);
  });

  it("are all named in the README", () => {
    const readme = inRoot("README.md");
    const named = linksOf(readFileSync(readme, "utf8")).map(({ target }) =>
      path.resolve(path.dirname(readme), target.split("#")[0]),
    );

    assert.deepEqual(
      filesUnder("docs").filter((file) => isPage(file) && !named.includes(file)),
      [],
    );
  });

  it("begin with a question or a name, and have no code that nothing checks", () => {
    for (const file of pages) {
      const text = readFileSync(file, "utf8");

      assert.match(text, /^# \S/, file);
      assert.deepEqual(unmarked(text), [], `${file}: fences with code but without a mark`);
    }
  });
});
