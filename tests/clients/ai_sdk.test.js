// The package ai with @ai-sdk/openai-compatible.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { address, key, metric, model, untilCancelled, weather } from './server.js';

const provider = createOpenAICompatible({ name: 'inlay', baseURL: `${address}/v1`, apiKey: key, includeUsage: true });
const scripted = provider(model);

const tools = {
  add: tool({
    description: 'Adds.',
    inputSchema: z.object({ a: z.number(), b: z.number() }),
    execute: async ({ a, b }) => a + b,
  }),
  weather: tool({
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => weather[city],
  }),
};

const essence = ({ text, reasoningText, finishReason, toolCalls, usage }) => ({
  text,
  reasoningText,
  finishReason,
  calls: toolCalls.map(({ toolName, input }) => ({ toolName, input })),
  outputTokens: usage.outputTokens,
});

// The streamed answer must be the whole one, in each step.
async function bothWays(request) {
  const all = { model: scripted, maxRetries: 0, stopWhen: stepCountIs(5), ...request };
  const whole = await generateText(all);
  const streamed = streamText({ ...all, onError: ({ error }) => { throw error; } });
  let text = '';
  for await (const delta of streamed.textStream) text += delta;
  const steps = await streamed.steps;
  assert.deepEqual(steps.map(essence), whole.steps.map(essence));
  assert.equal(text, steps.map((step) => step.text).join(''));
  return whole;
}

test('ai: a text', async () => {
  const { text, finishReason, usage } = await bothWays({ prompt: 'Hello' });
  assert.equal(text, 'Hello, world.');
  assert.equal(finishReason, 'stop');
  assert.equal(usage.outputTokens, 4);
});

test('ai: thoughts', async () => {
  const { text, reasoningText, usage } = await bothWays({ prompt: 'Think' });
  assert.equal(reasoningText, 'Two twos.');
  assert.equal(text, 'Four.');
  assert.equal(usage.outputTokenDetails.reasoningTokens, 4);
});

test('ai: several steps with calls', async () => {
  const { text, steps } = await bothWays({ prompt: 'Add 2 and 3, twice', tools });
  assert.equal(text, 'Twice 5 is 10.');
  assert.deepEqual(steps.map(({ finishReason }) => finishReason), ['tool-calls', 'tool-calls', 'stop']);
  assert.deepEqual(steps.map(({ toolResults }) => toolResults.map(({ output }) => output)),
                   [[5], [10], []]);
});

test('ai: thoughts go along with calls', async () => {
  const { text } = await bothWays({ prompt: 'Add 2 and 3', tools });
  assert.equal(text, '5, as thought.');
});

test('ai: parallel calls', async () => {
  const { text, steps } = await bothWays({ prompt: 'How is the weather in Paris and Rome?', tools });
  assert.equal(steps[0].text, 'I look.');
  assert.deepEqual(steps[0].toolCalls.map(({ input }) => input.city), ['Paris', 'Rome']);
  assert.equal(text, 'Sun in Paris, rain in Rome.');
});

test('ai: an aborted stream ends the answer', async () => {
  const before = await metric('inlay_answers_cancelled_total');
  const abort = new AbortController();
  const { textStream } = streamText(
    { model: scripted, prompt: 'Tick', maxRetries: 0, abortSignal: abort.signal });
  let text = '';
  for await (const delta of textStream) {
    text += delta;
    if (text.length >= 40) abort.abort();
  }
  assert.ok(text.startsWith('tick tock tick tock'));
  await untilCancelled(before);
});

test('ai: a call that is demanded', async () => {
  const { toolCalls } = await generateText({ model: scripted, prompt: 'Add 2 and 3', tools, toolChoice: 'required' });
  assert.deepEqual(toolCalls.map(({ toolName, input }) => ({ toolName, input })),
                   [{ toolName: 'add', input: { a: 2, b: 3 } }]);
});

test('ai: errors are typed', async () => {
  const refused = (request, message) => assert.rejects(
    generateText({ model: scripted, maxRetries: 0, prompt: 'Hello', ...request }),
    (error) => {
      assert.ok(APICallError.isInstance(error), `${error}`);
      assert.equal(error.statusCode, 400);
      assert.match(error.message, message);
      return true;
    });
  await refused({ temperature: 3 }, /temperature/);
  await refused({ tools, toolChoice: { type: 'tool', toolName: 'turn' } }, /tool_choice.*turn/);
});
