// Opens a folder, calls an actor, and writes the answer.

import { setup } from "greenroom";
import { reply } from "../actors.mjs";

const registry = setup({ use: { reply }, storage: process.argv[2] });
process.stdout.write(String(await registry.client().reply.getOrCreate("first").add(1)));
