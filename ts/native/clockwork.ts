/**
 * The timers and the clock of Node.js, as they were when this was loaded.
 *
 * Tests put false ones in the place of the globals, and move or stop them at will;
 * calls and commits go on by the real ones.
 */
const { clearTimeout, setImmediate, setInterval, setTimeout } = globalThis;

/** Milliseconds since some point of this environment. */
const now: () => number = performance.now.bind(performance);

export { clearTimeout, now, setImmediate, setInterval, setTimeout };
