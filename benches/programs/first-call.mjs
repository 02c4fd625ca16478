// Opens a folder, calls an actor, and writes the CPU time that this took, in microseconds.

import { setup } from "greenroom";
import { reply } from "../actors.mjs";

const registry = setup({ use: { reply }, storage: process.argv[2] });
await registry.client().reply.getOrCreate("first").add(1);
const { user, system } = process.cpuUsage();
process.stdout.write(String(user + system));
