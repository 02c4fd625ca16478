// A month in the life of an assistant, tested in a moment: its language model is busy, its process dies,
// and summer time begins.
//
//     npm run example -- assistant

import assert from "node:assert/strict";
import { test } from "node:test";
import { testRuntime } from "greenroom/testing";
import { assistant, type Model } from "./assistant.mjs";

/** A model that notes what it was asked, and answers by `reply`. */
function fakeModel(reply: (prompt: string, time: number) => string | Promise<string>) {
  const asked: string[] = [];
  const model: Model = {
    async complete(prompt) {
      asked.push(prompt);
      return reply(prompt, asked.filter((other) => other === prompt).length);
    },
  };
  return { asked, model };
}

const quiet = { logging: { level: "silent" } } as const;

test("a question is asked again, later each time, while the model is busy", async () => {
  const { asked, model } = fakeModel((prompt, time) => {
    if (time < 4) throw new Error("too many requests");
    return `${prompt} Yes.`;
  });
  await using runtime = testRuntime({ use: { assistant }, deps: { model }, ...quiet });
  const ada = runtime.client.assistant.getOrCreate("ada");
  await ada.send("questions", "Is it raining?");

  // After one second, two and four.
  await runtime.clock.advance("6999 ms");
  assert.equal(asked.length, 3);
  await runtime.clock.advance(1);

  assert.equal(await ada.answer("Is it raining?"), "Is it raining? Yes.");
});

test("one question that cannot be answered holds up no other", async () => {
  const { model } = fakeModel((prompt) => {
    if (prompt === "Why?") throw new Error("no idea");
    return "Because.";
  });
  await using runtime = testRuntime({ use: { assistant }, deps: { model }, ...quiet });
  const ada = runtime.client.assistant.getOrCreate("ada");
  await ada.send("questions", "Why?");
  await ada.send("questions", "Why not?");

  await runtime.clock.advance("1 hour");

  assert.equal(await ada.answer("Why not?"), "Because.");
  const [dead] = await ada.unanswered();
  assert.deepEqual([dead?.body, dead?.deliveryCount], ["Why?", 5]);
});

test("a process that dies while the model thinks loses no question and repeats no other", async () => {
  const { asked, model } = fakeModel((prompt, time) => {
    if (prompt !== "two" || time > 1) return `${prompt}!`;
    void runtime.crash();
    // What was on its way never comes back.
    return new Promise(() => {});
  });
  await using runtime = testRuntime({ use: { assistant }, deps: { model }, ...quiet });
  const ada = runtime.client.assistant.getOrCreate("ada");
  for (const question of ["one", "two", "three"]) {
    await ada.send("questions", question, { delay: 1_000 });
  }

  await runtime.clock.advance("1 minute");

  // That a delivery failed is known by its count: it waits as after any other failure.
  assert.deepEqual(asked, ["one", "two", "three", "two"]);
  const answers = ["one", "two", "three"].map((question) => ada.answer(question));
  assert.deepEqual(await Promise.all(answers), ["one!", "two!", "three!"]);
});

test("every night there is one summary, whatever the process does", async () => {
  const { asked, model } = fakeModel((prompt) => `about ${prompt.length} letters`);
  await using runtime = testRuntime({
    use: { assistant },
    deps: { model },
    now: new Date("2025-03-15T12:00:00Z"),
    ...quiet,
  });
  const ada = runtime.client.assistant.getOrCreate("ada");
  await ada.send("questions", "What is new?");

  await runtime.clock.advance("10 days");
  assert.equal((await ada.summaries()).length, 10);
  // It comes back in the afternoon, and makes up for the two nights that it missed with one summary.
  await runtime.crash({ down: "48 hours" });
  await runtime.clock.advance(0);
  assert.equal((await ada.summaries()).length, 11);
  // In the night to the 30th of March three o'clock comes an hour earlier.
  await runtime.clock.advance("10 days");

  const summaries = await ada.summaries();
  assert.equal(summaries.length, 21);
  assert.equal(summaries[0], "about 20 letters");
  assert.equal(summaries[20], "a quiet day");
  assert.deepEqual(asked, ["What is new?", "sum up: What is new?"]);
});
