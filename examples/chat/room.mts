// A chat room: who is here, what was said, and what is to be said later.
//
// 1. A message has the id that its sender gave it, so one that is sent again after a lost answer stands
//    there once.
// 2. The room keeps nothing for those who are here: they are its connections, which outlive its sleep.

import { actor, event, UserError } from "greenroom";

const KEPT_MESSAGES = 200;
const LONGEST_TEXT = 2_000;
const LONGEST_NAME = 24;
const LONGEST_DELAY_MS = 7 * 24 * 60 * 60 * 1_000;

/** What was said, or is to be said. */
export interface Message {
  id: string;
  from: string;
  text: string;
  at: number;
}

/** Who asks to come in. `session` is the same whenever a page connects again. */
export interface Guest {
  name: string;
  session: string;
}

interface RoomState {
  messages: Message[];
  later: Message[];
  wakes: number;
}

export const room = actor({
  createState: (): RoomState => ({ messages: [], later: [], wakes: 0 }),
  events: {
    said: event<Message>(),
    here: event<{ names: string[] }>(),
    later: event<{ messages: Message[] }>(),
    woke: event<{ wakes: number }>(),
  },
  options: { sleepTimeout: 3_000 },

  createConnState(c, { name, session }: Guest): Guest {
    const wanted = String(name).trim().slice(0, LONGEST_NAME);
    if (wanted === "") throw new UserError("a name is needed", { code: "no_name" });
    for (const { state } of c.conns.values()) {
      const other = state as Guest;
      if (other.name === wanted && other.session !== session) {
        throw new UserError(`${wanted} is here already`, { code: "name_taken" });
      }
    }
    return { name: wanted, session: String(session) };
  },

  onConnect: (c) => c.broadcast("here", { names: names(c.conns.values()) }),
  onDisconnect: (c) => c.broadcast("here", { names: names(c.conns.values()) }),

  onWake(c) {
    c.state.wakes += 1;
    c.broadcast("woke", { wakes: c.state.wakes });
  },

  actions: {
    /** All that a page shows at first. */
    look: (c) => ({
      messages: c.state.messages,
      later: c.state.later,
      wakes: c.state.wakes,
      names: names(c.conns.values()),
    }),

    /** Says something. Answers once it is on the disk. */
    say(c, id: string, text: string) {
      const message = { id: String(id), from: nameOf(c.conn), text: checked(text), at: c.now };
      if (c.state.messages.some((said) => said.id === message.id)) return;
      c.state.messages.push(message);
      c.state.messages.splice(0, c.state.messages.length - KEPT_MESSAGES);
      c.broadcast("said", message);
    },

    /** Says something in `delay` milliseconds, whoever is here by then. */
    async sayLater(c, id: string, text: string, delay: number) {
      if (!(delay > 0 && delay <= LONGEST_DELAY_MS)) {
        throw new UserError(`${delay} ms are not up to a week`, { code: "bad_delay" });
      }
      const message = {
        id: String(id),
        from: nameOf(c.conn),
        text: checked(text),
        at: c.now + delay,
      };
      if (c.state.later.some((planned) => planned.id === message.id)) return;
      c.state.later.push(message);
      await c.schedule.at(message.at, { action: "deliver", args: [message.id], key: message.id });
      c.broadcast("later", { messages: c.state.later });
    },
  },

  internalActions: {
    deliver(c, id: string) {
      const message = c.state.later.find((planned) => planned.id === id);
      if (message === undefined) return;
      c.state.later = c.state.later.filter((planned) => planned.id !== id);
      c.state.messages.push(message);
      c.broadcast("said", message);
      c.broadcast("later", { messages: c.state.later });
    },
  },
});

function names(conns: Iterable<{ readonly state: unknown }>): string[] {
  return [...new Set(Array.from(conns, ({ state }) => (state as Guest).name))].sort();
}

function nameOf(conn: { readonly state: unknown } | undefined): string {
  if (conn === undefined) throw new UserError("only guests speak", { code: "no_guest" });
  return (conn.state as Guest).name;
}

function checked(text: unknown): string {
  const said = String(text).trim();
  if (said === "" || said.length > LONGEST_TEXT) {
    throw new UserError(`a message has 1 to ${LONGEST_TEXT} characters`, { code: "bad_text" });
  }
  return said;
}
