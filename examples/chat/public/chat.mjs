// The page of the chat: one connection to one room.

import { createClient } from "./greenroom/client/index.js";

const element = (id) => document.getElementById(id);
const client = createClient();
/** The same whenever this page connects again, so that it is taken for the guest that it was. */
const session = crypto.randomUUID();
/** Messages on the page, by id. */
const shown = new Map();
let connection;
let me = "";

const query = new URLSearchParams(location.search);
element("room").value = query.get("room") ?? "kitchen";
element("name").value = query.get("name") ?? "";
element("name").focus();

element("door").addEventListener("submit", (event) => {
  event.preventDefault();
  enter(element("room").value.trim(), element("name").value.trim());
});

async function enter(room, name) {
  me = name;
  element("refused").textContent = "";
  connection = client.room.getOrCreate(room, { params: { name, session } }).connect();
  connection.on("said", show);
  connection.on("here", ({ names }) => showHere(names));
  connection.on("later", ({ messages }) => showLater(messages));
  connection.on("woke", ({ wakes }) => showWakes(wakes));
  connection.onStatusChange(showStatus);
  // The first time and after every loss: what was said meanwhile comes with it.
  connection.onOpen(look);
  try {
    await connection.ready;
  } catch (error) {
    element("refused").textContent = error.message;
    return;
  }
  element("title").textContent = room;
  element("door").hidden = true;
  element("chat").hidden = false;
  showStatus(connection.connStatus);
  element("text").focus();
}

async function look() {
  try {
    const { messages, later, wakes, names } = await connection.look();
    for (const message of messages) show(message);
    showHere(names);
    showLater(later);
    showWakes(wakes);
  } catch {
    // The connection was lost again: the next one looks again.
  }
}

element("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = element("text").value.trim();
  if (text === "") return;
  const delay = Number(element("when").value);
  element("text").value = "";
  element("when").value = "0";
  const id = crypto.randomUUID();
  if (delay > 0) {
    deliver(() => connection.sayLater(id, text, delay));
    return;
  }
  const entry = show({ id, from: me, text, at: Date.now() });
  entry.classList.add("sending");
  deliver(() => connection.say(id, text)).then(
    () => entry.classList.remove("sending"),
    (error) => {
      entry.classList.add("failed");
      entry.querySelector(".who").textContent = error.message;
    },
  );
});

/** Calls until there is an answer. The id of the message keeps the room from taking it twice. */
async function deliver(call) {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      // What the room itself says is an answer; anything else is a connection that was lost.
      if (error.group === "user" || connection.connStatus === "idle") throw error;
    }
  }
}

function show({ id, from, text, at }) {
  const known = shown.get(id);
  if (known !== undefined) {
    known.classList.remove("sending");
    return known;
  }
  const entry = document.createElement("li");
  entry.className = from === me ? "message mine" : "message";
  const time = new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  entry.append(face(from), part("who", `${from}, ${time}`), part("what", text));
  shown.set(id, entry);
  element("messages").append(entry);
  entry.scrollIntoView({ block: "end" });
  return entry;
}

function showHere(names) {
  element("here").replaceChildren(
    ...names.map((name) => {
      const entry = document.createElement("li");
      entry.append(face(name), name === me ? `${name} (you)` : name);
      return entry;
    }),
  );
}

function showLater(messages) {
  element("later").replaceChildren(
    ...messages.map(({ from, text, at }) => {
      const entry = document.createElement("li");
      entry.textContent = `${new Date(at).toLocaleTimeString()} ${from}: ${text}`;
      return entry;
    }),
  );
}

function showWakes(wakes) {
  element("wakes").textContent = `woken ${wakes} ${wakes === 1 ? "time" : "times"}`;
}

function showStatus(status) {
  element("status").dataset.status = status;
  element("status").textContent = status === "connected" ? "connected" : "connecting again";
}

function face(name) {
  const entry = part("face", name.slice(0, 2));
  const sum = [...name].reduce((total, letter) => total + letter.codePointAt(0) * 37, 0);
  entry.style.setProperty("--hue", sum % 360);
  return entry;
}

function part(name, text) {
  const entry = document.createElement("span");
  entry.className = name;
  entry.textContent = text;
  return entry;
}
