// What the tests of clients and of applications wait with, and compare with.

const LIMIT_MS = 20_000;

export const ENCODINGS = ["json", "cbor", "bare"];

/** Rejects, saying what did not happen, after a while. */
export async function within(promise, what, limitMs = LIMIT_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`still not so: ${what}`)), limitMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves with the arguments when `on(listener)` calls its listener. */
export const told = (on, what) =>
  within(new Promise((resolve) => on((...args) => resolve(args))), what);

/** Hears an event of a connection: `next()` is the next one that was not taken. */
export function hears(conn, name = "said") {
  const heard = [];
  const waiting = [];
  const off = conn.on(name, (...args) => {
    const first = waiting.shift();
    if (first) first(args);
    else heard.push(args);
  });
  return {
    off,
    /** How many there are that nobody took. */
    get left() {
      return heard.length;
    },
    next() {
      if (heard.length > 0) return Promise.resolve(heard.shift());
      return within(new Promise((resolve) => waiting.push(resolve)), `an event ${name}`);
    },
  };
}

/** The same value with `Uint8Array` for every kind of view of bytes, which differ between encodings. */
export function plain(value) {
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value?.constructor !== Object) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}
