// Ends a script by running the program it has prepared.

import { spawn } from "node:child_process";

/** Runs a command on this terminal and ends with its exit code. */
export function handOver([file, ...args]) {
  const program = spawn(file, args, { stdio: "inherit" });
  program.on("exit", (code) => {
    process.exitCode = code ?? 1;
  });
}
