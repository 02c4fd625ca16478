/** The public types, and what the layer's own files share. */

export type * from "./actions";
export type * from "./client";
export type * from "./config";
export type * from "./connected";
export type * from "./connections";
export type * from "./context";
export type * from "./definition";
export type * from "./events";
export type * from "./kv";
export type * from "./queue";
export type * from "./renamed";
export type * from "./schedule";
export type * from "./sql";
export type * from "./transaction";
export type * from "./web-socket";
