// The package @openai/agents: an agent with a tool, over chat/completions and over responses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { address, key, model, weather } from './server.js';

const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: key, maxRetries: 0 });
const runner = new Runner({ tracingDisabled: true });

const tools = [
  tool({
    name: 'add',
    description: 'Adds.',
    parameters: z.object({ a: z.number(), b: z.number() }),
    execute: async ({ a, b }) => String(a + b),
  }),
  tool({
    name: 'weather',
    description: 'Looks out of the window.',
    parameters: z.object({ city: z.string() }),
    execute: async ({ city }) => weather[city],
  }),
];

const questions = [
  ['Hello', 'Hello, world.'],
  ['Add 2 and 3, twice', 'Twice 5 is 10.'],
  ['How is the weather in Paris and Rome?', 'Sun in Paris, rain in Rome.'],
];

for (const [name, Model] of Object.entries({ OpenAIChatCompletionsModel, OpenAIResponsesModel })) {
  const agent = new Agent({ name: 'Agent', instructions: 'Be short.', model: new Model(client, model), tools });
  for (const [question, answer] of questions) {
    test(`${name}: ${question}`, async () => {
      const whole = await runner.run(agent, question);
      assert.equal(whole.finalOutput, answer);
      const streamed = await runner.run(agent, question, { stream: true });
      let text = '';
      for await (const delta of streamed.toTextStream()) text += delta;
      await streamed.completed;
      assert.equal(streamed.finalOutput, answer);
      assert.ok(text.endsWith(answer), text);
      assert.equal(streamed.newItems.length, whole.newItems.length);
    });
  }

  test(`${name}: a conversation goes on`, async () => {
    const first = await runner.run(agent, 'Add 2 and 3, twice');
    const second = await runner.run(agent, [...first.history, { role: 'user', content: 'Hello' }]);
    assert.equal(second.finalOutput, 'Hello, world.');
  });
}
