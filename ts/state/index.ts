/**
 * State that notices changes at any depth.
 *
 * Plain objects and arrays are watched through proxies, made when they are first read. Dates, maps,
 * sets, typed arrays, regular expressions and errors are handed out as they are, because proxies
 * break them: handing one out makes the generation *suspect*, and what is suspect is encoded and
 * compared when a turn ends.
 */

import "./handlers";

export { adopt } from "./adopt";
export { type Owner, seen } from "./entries";
