// Calls actions as fast as they are answered: `node crowd.mjs PORT SECONDS`, 64 in flight over 100 actors by
// the published client. Prints how many calls a second that were.

import { createClient } from "rivetkit/client";

const [port, seconds] = process.argv.slice(2).map(Number);
const client = createClient({
  endpoint: `http://127.0.0.1:${port}`,
  disableMetadataLookup: true,
});

const connections = [];
for (let i = 0; i < 100; i++) {
  const connection = client.counter.getOrCreate([`crowd ${i}`]).connect();
  if (!connection.isConnected) await new Promise((resolve) => connection.onOpen(resolve));
  connections.push(connection);
}
let calls = 0;
const end = performance.now() + seconds * 1000;
const lane = async () => {
  while (performance.now() < end) await connections[calls++ % connections.length].increment();
};
await Promise.all(Array.from({ length: 64 }, lane));
process.stdout.write(`${Math.round(calls / seconds)}\n`);
process.exit(0);
