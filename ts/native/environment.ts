import { Dispatch } from "./dispatch.js";
import { once } from "./once.js";

/**
 * The dispatch of this environment. Where the module is loaded twice, as by a test runner that clears
 * the cache, the second takes that of the first: to Rust they are one environment.
 */
export const dispatch = once("dispatch", () => new Dispatch());
