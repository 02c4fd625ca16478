// The code in a page of Markdown that is marked to be run, compiled or compared.

const FENCE = /^```(\w+)(?:[ \t]+([^\n]+))?\n([\s\S]*?)^```$/gm;

/** All fences of one page that name a language: `{language, words, code, line}`. */
function all(text) {
  return [...text.matchAll(FENCE)].map(({ index, 1: language, 2: words, 3: code }) => ({
    language,
    words,
    code,
    line: text.slice(0, index).split("\n").length,
  }));
}

/** The name that a test knows a fence by. */
function tested(words) {
  const test = /\btest=(\S+)/.exec(words)?.[1];
  return test === undefined ? {} : { test };
}

/** The marked fences of one page: `{language, run, output, file, code, line}`, with `check` and `test` where it says so. */
export function fencesOf(text) {
  return all(text)
    .filter(({ words }) => words !== undefined)
    .map(({ language, words, code, line }) => ({
      language,
      ...tested(words),
      run: /\brun\b/.test(words),
      output: /\boutput\b/.test(words),
      ...(/\bcheck\b/.test(words) ? { check: true } : {}),
      file: /\bfile=(\S+)/.exec(words)?.[1],
      code,
      line,
    }));
}

/** The lines of fences with code that nothing looks at, since they are not marked. */
export function unmarked(text) {
  return all(text)
    .filter(({ language, words }) => /^(ts|js|mjs|mts)$/.test(language) && words === undefined)
    .map(({ line }) => line);
}
