// Answers questions with a language model, and sums up each day in the night after it.

import { type ActorContextOf, actor, queue } from "greenroom";

/** What the assistant needs of a language model. */
export interface Model {
  complete(prompt: string): Promise<string>;
}

export const assistant = actor({
  state: {
    answers: {} as Record<string, string>,
    today: [] as string[],
    summaries: [] as string[],
  },
  createVars: (_c, deps: { model: Model }) => ({ model: deps.model }),
  queues: {
    questions: queue<string>({ maxDeliveries: 5, backoff: { initial: 1_000, max: 60_000 } }),
  },
  onCreate: (c) =>
    c.cron.set({
      name: "nightly",
      expression: "0 3 * * *",
      timezone: "Europe/Berlin",
      action: "sumUp",
      retry: { maxAttempts: 3, backoff: { initial: 60_000 } },
    }),
  async run(c) {
    for await (const message of c.queue.iter({ completable: true })) {
      const answer = await c.vars.model.complete(message.body).catch(String);
      if (answer.startsWith("Error")) {
        await message.nack({ error: answer });
        continue;
      }
      c.state.answers[message.body] = answer;
      c.state.today.push(message.body);
      // In the same turn as the answer: both are stored, or neither is.
      await message.complete();
    }
  },
  actions: {
    answer: (c, question: string) => c.state.answers[question],
    summaries: (c) => c.snapshot().summaries,
    unanswered: (c) => c.queue.dead.list(),
  },
  internalActions: {
    sumUp: (c) => sumUp(c as ActorContextOf<typeof assistant>),
  },
});

async function sumUp(c: ActorContextOf<typeof assistant>): Promise<void> {
  const questions = c.snapshot().today;
  const summary =
    questions.length === 0
      ? "a quiet day"
      : await c.vars.model.complete(`sum up: ${questions.join(", ")}`);
  c.state.summaries.push(summary);
  c.state.today = c.snapshot().today.slice(questions.length);
}
