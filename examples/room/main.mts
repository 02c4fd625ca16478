// A room that remembers who is in it and what was said last, and that refuses strangers.
//
//     npm run example -- room

import assert from "node:assert/strict";
import { actor, setup, UserError } from "greenroom";

const KEPT_MESSAGES = 100;

interface Message {
  from: string;
  text: string;
  at: Date;
}

interface RoomState {
  members: Set<string>;
  messages: Message[];
}

const room = actor({
  createState: (): RoomState => ({ members: new Set(), messages: [] }),
  actions: {
    join(c, name: string) {
      if (c.state.members.has(name)) {
        throw new UserError(`${name} is already here`, { code: "already_joined" });
      }
      c.state.members.add(name);
    },

    say(c, name: string, text: string) {
      if (!c.state.members.has(name)) {
        throw new UserError(`${name} is not in this room`, { code: "not_a_member" });
      }
      c.state.messages.push({ from: name, text, at: new Date() });
      // The state is what is written at each change: keep it as small as the room needs.
      c.state.messages.splice(0, c.state.messages.length - KEPT_MESSAGES);
    },

    history: (c) => c.state.messages.map(({ from, text }) => `${from}: ${text}`),
    members: (c) => [...c.state.members],
    leave(c, name: string) {
      c.state.members.delete(name);
    },
  },
});

const registry = setup({ use: { room }, storage: ":memory:" });
const client = registry.client();
const kitchen = client.room.getOrCreate("kitchen");

await kitchen.join("ada");
await kitchen.join("grace");
await kitchen.say("ada", "is there coffee?");
await kitchen.say("grace", "always");

await assert.rejects(kitchen.say("eve", "me too"), { group: "user", code: "not_a_member" });
await kitchen.leave("ada");

console.log(`members: ${(await kitchen.members()).join(", ")}`);
console.log((await kitchen.history()).join("\n"));

// Another key is another room.
console.log(`in the cellar: ${(await client.room.getOrCreate("cellar").members()).length} people`);

await registry.shutdown();
