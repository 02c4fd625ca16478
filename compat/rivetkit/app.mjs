// A program of RivetKit's: `node app.mjs AREA...`, which serves the actors of those areas where
// RivetKit's own settings say so, and runs until a signal ends it.

import { setup } from "rivetkit";

import { witness } from "./notes.mjs";

const areas = process.argv.slice(2);
const modules = await Promise.all(areas.map((area) => import(`./${area}.app.mjs`)));
const use = { witness };
for (const [name, definition] of modules.flatMap(({ actors }) => Object.entries(actors))) {
  if (Object.hasOwn(use, name)) throw new Error(`two areas have an actor ${name}`);
  use[name] = definition;
}

setup({ use, noWelcome: true }).start();
