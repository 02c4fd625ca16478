// The page that `75.react.test.mjs` bundles: a room with its members, by RivetKit's hooks for React.

import { createRivetKit } from "@rivetkit/react";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);
const { useActor } = createRivetKit({
  endpoint: query.get("endpoint"),
  encoding: query.get("encoding"),
});

function Room() {
  const [key, setKey] = useState("first");
  const [heard, setHeard] = useState([]);
  const [answer, setAnswer] = useState("");
  const room = useActor({ name: "room", key: [key], params: { name: query.get("name") } });
  room.useEvent("said", (who, text) => setHeard((before) => [...before, `${who}: ${text}`]));
  const say = async () => setAnswer(String(await room.connection.say("hello")));
  const fail = () =>
    room.connection.fail().catch(({ group, code }) => setAnswer(`${group}.${code}`));
  return (
    <main>
      <p id="status">{room.connStatus}</p>
      <p id="heard">{heard.join("|")}</p>
      <p id="answer">{answer}</p>
      <button id="say" type="button" onClick={say}>
        say
      </button>
      <button id="fail" type="button" onClick={fail}>
        fail
      </button>
      <button id="move" type="button" onClick={() => setKey("second")}>
        move
      </button>
    </main>
  );
}

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <Room />
  </StrictMode>,
);
