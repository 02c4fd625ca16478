// Which text is counted, and how it is cut into chunks.
//
// 1. The cut is decided once and written down, so every process that works on the folder numbers
//    the chunks alike.
// 2. A cut is never inside a word: only white space is cut at.

import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import path from "node:path";

const TEXT =
  /(\.md|\.txt|\.d\.[cm]?ts)$|^(licen[cs]e|readme|changelog|authors|notice)(\.[a-z]+)?$/i;
const LARGEST_CHUNK_BYTES = 128 * 1024;
const SMALLEST_CHUNK_BYTES = 512;
/** Little text is cut finer, so that there is something to be killed in. */
const CHUNKS_AT_LEAST = 100;

/** The text files under a folder, sorted; symbolic links are not followed. */
export function textFilesUnder(folder) {
  const entries = readdirSync(folder, { withFileTypes: true });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const full = path.join(folder, entry.name);
    if (entry.isDirectory()) return textFilesUnder(full);
    return entry.isFile() && TEXT.test(entry.name) ? [full] : [];
  });
}

const isSpace = (byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);

/** Cuts files of `total` bytes into chunks: a list of lists of `{file, start, end}`. */
export function planChunks(files, total) {
  const fine = Math.max(SMALLEST_CHUNK_BYTES, Math.floor(total / CHUNKS_AT_LEAST));
  const chunkBytes = Math.min(LARGEST_CHUNK_BYTES, fine);
  const chunks = [];
  let chunk = [];
  let size = 0;
  for (const file of files) {
    const bytes = readFileSync(file);
    let start = 0;
    while (start < bytes.length) {
      let end = Math.min(bytes.length, start + chunkBytes - size);
      while (end < bytes.length && !isSpace(bytes[end])) end++;
      chunk.push({ file, start, end });
      size += end - start;
      start = end;
      if (size >= chunkBytes) {
        chunks.push(chunk);
        chunk = [];
        size = 0;
      }
    }
  }
  if (chunk.length > 0) chunks.push(chunk);
  return chunks;
}

/** The texts of one chunk. */
export function readChunk(chunk) {
  return chunk.map(({ file, start, end }) => {
    const bytes = Buffer.alloc(end - start);
    const descriptor = openSync(file, "r");
    try {
      const read = readSync(descriptor, bytes, 0, bytes.length, start);
      if (read !== bytes.length) throw new Error(`${file} is shorter than when it was cut`);
    } finally {
      closeSync(descriptor);
    }
    return bytes.toString("utf8");
  });
}
