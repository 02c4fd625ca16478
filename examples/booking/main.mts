// Shows with seats, and visitors who book them: input, schemas, and calls between actors.
//
//     npm run example -- booking

import assert from "node:assert/strict";
import { actor, setup, UserError } from "greenroom";
import { schema, whole } from "./schema.mjs";

const MOST_SEATS = 100;

const show = actor({
  // Whoever creates a show passes the first type; the actor gets the second.
  inputSchema: schema<{ seats: number }, { seats: number }>((input) => ({
    seats: whole((input as { seats?: unknown }).seats, "seats", MOST_SEATS),
  })),
  createState: (_c, input) => ({ free: input.seats, bookings: new Map<string, number>() }),
  actions: {
    /** Takes seats, once for each `booking`: who did not hear the answer may ask again. */
    take(c, booking: string, seats: number) {
      if (c.state.bookings.has(booking)) return c.state.free;
      if (seats > c.state.free) {
        throw new UserError("not enough seats", {
          code: "sold_out",
          metadata: { free: c.state.free },
        });
      }
      c.state.bookings.set(booking, seats);
      c.state.free -= seats;
      return c.state.free;
    },
  },
  actionInputSchemas: {
    take: schema<unknown, [string, number]>((args) => {
      const [booking, seats] = args as unknown[];
      return [String(booking), whole(seats, "seats", MOST_SEATS)];
    }),
  },
});

const visitor = actor({
  state: { asked: 0, tickets: [] as { show: string; seats: number }[] },
  actions: {
    async book(c, name: string, seats: number) {
      // The call leaves when this number is on the disk: no later booking gets it again.
      c.state.asked += 1;
      const booking = `${c.key.join("/")} ${c.state.asked}`;
      const free = await c.client<typeof registry>().show.get(name).take(booking, seats);
      c.state.tickets.push({ show: name, seats });
      return free;
    },
    tickets: (c) => c.state.tickets.map((ticket) => `${ticket.seats} for ${ticket.show}`),
  },
});

const registry = setup({ use: { show, visitor }, storage: ":memory:" });
const client = registry.client();

await client.show.create("hamlet", { input: { seats: 3 } });
await assert.rejects(client.show.create("macbeth", { input: { seats: 0 } }), {
  code: "validation_error",
  metadata: { issues: [{ message: "seats is 0, not a whole number from 1 to 100" }] },
});

const ada = client.visitor.getOrCreate("ada");
const grace = client.visitor.getOrCreate("grace");
console.log(`ada books 2, ${await ada.book("hamlet", 2)} left`);
await assert.rejects(grace.book("hamlet", 2), {
  group: "user",
  code: "sold_out",
  metadata: { free: 1 },
});
await assert.rejects(grace.book("hamlet", 1.5), { code: "validation_error" });
console.log(`grace books 1, ${await grace.book("hamlet", 1)} left`);
await assert.rejects(grace.book("macbeth", 1), { group: "actor", code: "not_found" });

console.log(`ada has ${await ada.tickets()}, grace has ${await grace.tickets()}`);
await registry.shutdown();
