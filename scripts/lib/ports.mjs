// Ports of this machine, for programs that have to be told one.

import { createServer } from "node:net";

/** Those below are for well-known services, those above for whoever asks for any that is free. */
const [FIRST, COUNT] = [10_000, 20_000];

/** A port of loopback that is free now, and that no system gives to whoever asks for any. */
export async function freePort() {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    const server = createServer();
    const isFree = await new Promise((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
