// Links between the pages of the repository.
//
// 1. Only links to files are looked at: whether a site answers is no property of the repository.
// 2. What looks like a link inside code is none.

import { existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";

const CODE = /^(`{3,})[\s\S]*?^\1`*$|`[^`\n]*`/gm;
const LINK = /\[(?:[^\][]|\[[^\]]*\])*\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/g;
const DEFINITION = /^\[[^\]]+\]:\s+<?([^\s>]+)>?/gm;
const HEADING = /^#{1,6}\s+(.+?)\s*#*$/gm;

/** Without code (2); every line stays where it was. */
const prose = (text) => text.replace(CODE, (code) => code.replace(/[^\n]/g, " "));

/** The targets of all links of a page: `{target, line}`. */
export function linksOf(text) {
  const plain = prose(text);
  return [LINK, DEFINITION]
    .flatMap((pattern) => [...plain.matchAll(pattern)])
    .map(({ index, 1: target }) => ({
      target,
      line: plain.slice(0, index).split("\n").length,
    }))
    .sort((a, b) => a.line - b.line);
}

/** The names by which the headings of a page are linked, as GitHub makes them. */
export function anchorsOf(text) {
  const seen = new Map();
  // Only blocks of code are left out: a heading keeps what it has between backquotes.
  const headings = text.replace(/^(`{3,})[\s\S]*?^\1`*$/gm, "").matchAll(HEADING);
  return [...headings].map(([, heading]) => {
    const shown = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
    const name = shown
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/\s/g, "-");
    const times = seen.get(name) ?? 0;
    seen.set(name, times + 1);
    return times === 0 ? name : `${name}-${times}`;
  });
}

/** Whether a target is a place in the web, or a mail address (1). */
const elsewhere = (target) => /^[a-z][a-z+.-]*:/i.test(target);

/** What is wrong with the links of the page `file`, one sentence each. */
export function brokenLinks(file) {
  const text = readFileSync(file, "utf8");
  return linksOf(text).flatMap(({ target, line }) => {
    if (elsewhere(target)) return [];
    const [place, anchor] = target.split("#", 2);
    const to = place === "" ? file : path.resolve(path.dirname(file), decodeURI(place));
    const at = `${file}:${line}`;
    if (!existsSync(to)) return [`${at}: there is no ${target}`];
    if (anchor === undefined || statSync(to).isDirectory()) return [];
    const anchors = anchorsOf(to === file ? text : readFileSync(to, "utf8"));
    return anchors.includes(anchor) ? [] : [`${at}: ${target} names no heading`];
  });
}
