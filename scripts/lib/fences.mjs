// The code in a page of Markdown that is marked to be run or compared.

const FENCE = /^```(\w+)[ \t]+([^\n]+)\n([\s\S]*?)^```$/gm;

/** The marked fences of one page: `{language, run, output, file, code, line}`. */
export function fencesOf(text) {
  return [...text.matchAll(FENCE)].map(({ index, 1: language, 2: words, 3: code }) => ({
    language,
    run: /\brun\b/.test(words),
    output: /\boutput\b/.test(words),
    file: /\bfile=(\S+)/.exec(words)?.[1],
    code,
    line: text.slice(0, index).split("\n").length,
  }));
}
