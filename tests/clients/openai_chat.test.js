// The package openai with chat/completions, completions, models, and errors.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import {
  addParameters, address, collect, isTurn, key, metric, model, turnParameters, untilCancelled, weather,
  weatherParameters,
} from './server.js';

const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: key, maxRetries: 0 });

const ask = (content) => [{ role: 'user', content }];
const tools = [
  { type: 'function', function: { name: 'add', description: 'Adds.', parameters: addParameters } },
  { type: 'function', function: { name: 'weather', parameters: weatherParameters } },
];

// The whole answer that the chunks of a stream amount to, one choice.
function joined(chunks) {
  const message = { role: undefined, content: '', reasoning_content: '', tool_calls: [] };
  let finish_reason = null;
  for (const { choices } of chunks) {
    for (const choice of choices) {
      assert.equal(finish_reason, null, 'nothing follows the finish reason');
      const { delta } = choice;
      message.role ??= delta.role;
      message.content += delta.content ?? '';
      message.reasoning_content += delta.reasoning_content ?? '';
      for (const { index, ...call } of delta.tool_calls ?? []) {
        if (call.id) {
          assert.equal(index, message.tool_calls.length);
          message.tool_calls.push(structuredClone(call));
        } else {
          message.tool_calls[index].function.arguments += call.function.arguments;
        }
      }
      finish_reason = choice.finish_reason;
    }
  }
  return { message, finish_reason };
}

// Calls have a new id in every reply.
const withoutIds = (calls = []) => calls.map(({ id, ...call }) => call);

// The streamed answer must be the whole one.
async function bothWays(request) {
  const whole = await client.chat.completions.create({ model, ...request });
  const stream = await client.chat.completions.create({ model, ...request, stream: true });
  const chunks = await collect(stream);
  const streamed = joined(chunks);
  const [{ message, finish_reason }] = whole.choices;
  assert.equal(streamed.finish_reason, finish_reason);
  assert.equal(streamed.message.role, message.role);
  assert.equal(streamed.message.content, message.content ?? '');
  assert.equal(streamed.message.reasoning_content, message.reasoning_content ?? '');
  assert.deepEqual(withoutIds(streamed.message.tool_calls), withoutIds(message.tool_calls));
  return { message, finish_reason, usage: whole.usage, chunks };
}

test('chat: a text', async () => {
  const { message, finish_reason, usage, chunks } = await bothWays({ messages: ask('Hello') });
  assert.equal(message.content, 'Hello, world.');
  assert.equal(message.refusal, null);
  assert.equal(message.tool_calls, undefined);
  assert.equal(finish_reason, 'stop');
  assert.equal(usage.completion_tokens, 4);
  assert.equal(usage.total_tokens, usage.prompt_tokens + 4);
  for (const chunk of chunks) {
    assert.equal(chunk.object, 'chat.completion.chunk');
    assert.equal(chunk.id, chunks[0].id);
    assert.equal(chunk.usage, undefined);
  }
});

test('chat: thoughts', async () => {
  const { message, usage } = await bothWays({ messages: ask('Think') });
  assert.equal(message.reasoning_content, 'Two twos.');
  assert.equal(message.content, 'Four.');
  assert.equal(usage.completion_tokens, 7);
  assert.equal(usage.completion_tokens_details.reasoning_tokens, 4);
  const unthought = await bothWays({ messages: ask('Think'), reasoning_effort: 'none' });
  assert.equal(unthought.message.reasoning_content, undefined);
  assert.equal(unthought.message.content, 'Four, at once.');
});

test('chat: the last chunk has the usage', async () => {
  const stream = await client.chat.completions.create({
    model,
    messages: ask('Hello'),
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = await collect(stream);
  const last = chunks.pop();
  assert.deepEqual(last.choices, []);
  assert.equal(last.usage.completion_tokens, 4);
  for (const chunk of chunks) assert.equal(chunk.usage, null);
});

test('chat: stop, max_tokens', async () => {
  const stopped = await bothWays({ messages: ask('Hello'), stop: ['orl', 'x'] });
  assert.equal(stopped.message.content, 'Hello, w');
  assert.equal(stopped.finish_reason, 'stop');
  const cut = await bothWays({ messages: ask('Hello'), max_completion_tokens: 2 });
  assert.equal(cut.message.content, 'Hello,');
  assert.equal(cut.finish_reason, 'length');
  assert.equal(cut.usage.completion_tokens, 2);
});

test('chat: logprobs', async () => {
  const request = { model, messages: ask('Toss'), logprobs: true, top_logprobs: 2, seed: 3 };
  const whole = await client.chat.completions.create(request);
  const [{ message, logprobs }] = whole.choices;
  assert.equal(logprobs.content.map(({ token }) => token).join(''), message.content);
  const [face, dot] = logprobs.content;
  assert.deepEqual(face.top_logprobs.map(({ token }) => token).sort(), ['Heads', 'Tails']);
  for (const { logprob } of [face, ...face.top_logprobs])
    assert.ok(Math.abs(logprob - Math.log(0.5)) < 1e-3, `${logprob}`);
  assert.deepEqual(Buffer.from(face.bytes).toString(), face.token);
  assert.equal(dot.token, '.');
  assert.ok(dot.logprob > -1e-3);
  const chunks = await collect(await client.chat.completions.create({ ...request, stream: true }));
  const streamed = chunks.flatMap(({ choices }) => choices[0]?.logprobs?.content ?? []);
  assert.deepEqual(streamed, logprobs.content);
});

test('chat: n, seed', async () => {
  const request = { model, messages: ask('Toss'), n: 16 };
  const texts = ({ choices }) => choices.map(({ message }) => message.content);
  const whole = await client.chat.completions.create({ ...request, seed: 1 });
  assert.deepEqual(whole.choices.map(({ index }) => index), [...Array(16).keys()]);
  assert.deepEqual(new Set(texts(whole)), new Set(['Heads.', 'Tails.']));
  assert.equal(whole.usage.completion_tokens, 32);
  // The same seed, the same answers; a reply names the seed that it was given.
  const again = await client.chat.completions.create({ ...request, seed: 1 });
  assert.deepEqual(texts(again), texts(whole));
  const chosen = await client.chat.completions.create(request);
  assert.deepEqual(texts(await client.chat.completions.create({ ...request, seed: chosen.seed })),
                   texts(chosen));
  assert.equal(again.system_fingerprint, whole.system_fingerprint);
  // Streamed, too.
  const streamed = Array(16).fill('');
  const stream = await client.chat.completions.create({ ...request, seed: 1, stream: true });
  for await (const { choices } of stream)
    for (const { index, delta } of choices) streamed[index] += delta.content ?? '';
  assert.deepEqual(streamed, texts(whole));
});

test('chat: a call and its result', async () => {
  const messages = ask('Add 2 and 3');
  const { message, finish_reason } = await bothWays({ messages, tools });
  assert.equal(finish_reason, 'tool_calls');
  assert.equal(message.reasoning_content, 'I add.');
  assert.equal(message.content, null);
  const [call, ...others] = message.tool_calls;
  assert.deepEqual(others, []);
  assert.equal(call.type, 'function');
  assert.equal(call.function.name, 'add');
  assert.deepEqual(JSON.parse(call.function.arguments), { a: 2, b: 3 });
  const result = { role: 'tool', tool_call_id: call.id, content: '5' };
  // The thoughts come back with the message as it is, and need not.
  const thoughtful = await bothWays({ messages: [...messages, message, result], tools });
  assert.equal(thoughtful.message.content, '5, as thought.');
  const { reasoning_content, ...bare } = message;
  const answer = await bothWays({ messages: [...messages, bare, result], tools });
  assert.equal(answer.message.content, '2 + 3 = 5.');
  assert.equal(answer.finish_reason, 'stop');
  const wrong = { ...result, content: '6' };
  const odd = await bothWays({ messages: [...messages, bare, wrong], tools });
  assert.equal(odd.message.content, 'What?');
});

test('chat: parallel calls', async () => {
  const messages = ask('How is the weather in Paris and Rome?');
  const { message, finish_reason, chunks } = await bothWays({ messages, tools });
  assert.equal(finish_reason, 'tool_calls');
  assert.equal(message.content, 'I look.');
  assert.equal(message.tool_calls.length, 2);
  assert.equal(new Set(message.tool_calls.map(({ id }) => id)).size, 2);
  // The name comes at once, the arguments as they are written.
  const parts = chunks.flatMap(({ choices }) => choices[0].delta.tool_calls ?? []);
  assert.deepEqual(parts.filter(({ id }) => id).map(({ function: f }) => f),
                   Array(2).fill({ name: 'weather', arguments: '' }));
  assert.ok(parts.length >= 4);
  const results = message.tool_calls.map(({ id, function: { arguments: text } }) => (
    { role: 'tool', tool_call_id: id, content: weather[JSON.parse(text).city] }));
  const request = { messages: [...messages, message, ...results], tools };
  assert.equal((await bothWays(request)).message.content, 'Sun in Paris, rain in Rome.');
});

test('chat: one call only, no call', async () => {
  const messages = ask('How is the weather?');
  const one = await bothWays({ messages, tools, parallel_tool_calls: false });
  assert.equal(one.message.tool_calls.length, 1);
  assert.equal(one.finish_reason, 'tool_calls');
  const none = await bothWays({ messages: ask('Hello'), tools, tool_choice: 'none' });
  assert.equal(none.message.content, 'Hello, world.');
});

const runnable = (run) => ({
  type: 'function',
  function: { name: 'add', parameters: addParameters, parse: JSON.parse, function: run },
});

test('chat: the runner calls the tools itself', async () => {
  const runner = client.chat.completions.runTools({
    model,
    messages: ask('Add 2 and 3, twice'),
    tools: [runnable(({ a, b }) => String(a + b))],
    stream: true,
  });
  assert.equal(await runner.finalContent(), 'Twice 5 is 10.');
  assert.equal(runner.messages.filter(({ role }) => role === 'tool').length, 2);
});

// Of a stream it cannot be taken back: the runner finds no JSON, and says so to the model.
for (const stream of [false, true]) {
  test(`chat: a call without an end is none, stream: ${stream}`, async () => {
    const runner = client.chat.completions.runTools({
      model,
      messages: ask('Break'),
      tools: [runnable(() => assert.fail('called'))],
      stream,
    });
    assert.match(await runner.finalContent(), stream ? /^What\?$/ : /^<tool_call>.*oops/s);
  });
}

test('chat: an aborted stream ends the answer', async () => {
  const before = await metric('inlay_answers_cancelled_total');
  const stream = await client.chat.completions.create(
    { model, messages: ask('Tick'), stream: true });
  let text = '';
  for await (const { choices } of stream) {
    text += choices[0].delta.content ?? '';
    if (text.length >= 40) stream.controller.abort();
  }
  assert.ok(text.startsWith('tick tock tick tock'));
  await untilCancelled(before);
});

test('completions', async () => {
  const request = { model, prompt: 'Now count. Count:', logprobs: 1 };
  const whole = await client.completions.create(request);
  const [choice] = whole.choices;
  assert.equal(choice.text, ' one two three');
  assert.equal(choice.finish_reason, 'stop');
  assert.deepEqual(choice.logprobs.tokens, [' one', ' two', ' three']);
  assert.equal(whole.usage.completion_tokens, 3);
  const chunks = await collect(await client.completions.create({ ...request, stream: true }));
  assert.equal(chunks.map(({ choices }) => choices[0].text).join(''), choice.text);
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'stop');
  assert.deepEqual(chunks.flatMap(({ choices }) => choices[0].logprobs?.tokens ?? []),
                   choice.logprobs.tokens);
  const several = await client.completions.create(
    { model, prompt: ['Count:', 'x'], n: 2, echo: true, max_tokens: 2 });
  assert.deepEqual(several.choices.map(({ index, text }) => [index, text]),
                   [[0, 'Count: one two'], [1, 'Count: one two'], [2, 'x'], [3, 'x']]);
  const { choices: [scored] } = await client.completions.create(
    { model, prompt: 'Now count.', echo: true, logprobs: 1, max_tokens: 0 });
  assert.equal(scored.text, 'Now count.');
  const { tokens, token_logprobs, top_logprobs, text_offset } = scored.logprobs;
  assert.ok(tokens.join('').endsWith('Now count.'), tokens);
  assert.equal(token_logprobs[0], null);
  assert.ok(token_logprobs.slice(1).every((logprob) => logprob <= 0), token_logprobs);
  for (const list of [token_logprobs, top_logprobs, text_offset]) assert.equal(list.length, tokens.length);
});

test('models', async () => {
  const { data } = await client.models.list();
  assert.deepEqual(data.map(({ id }) => id), [model]);
  assert.equal((await client.models.retrieve(model)).id, model);
});

test('chat: calls that are demanded', async () => {
  const natural = await bothWays({ messages: ask('Add 2 and 3'), tools, tool_choice: 'required' });
  assert.deepEqual(JSON.parse(natural.message.tool_calls[0].function.arguments), { a: 2, b: 3 });
  const turn = { type: 'function', function: { name: 'turn', strict: true, parameters: turnParameters } };
  const named = { type: 'function', function: { name: 'turn' } };
  for (const request of [
    { tool_choice: named },
    { tool_choice: 'required', parallel_tool_calls: false, tools: [turn] },
    { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [named] } },
      parallel_tool_calls: false },
  ]) {
    const { message, finish_reason } = await bothWays(
      { messages: ask('Hello'), tools: [...tools, turn], seed: 5, ...request });
    assert.equal(finish_reason, 'tool_calls');
    assert.equal(message.tool_calls.length, 1);
    const [{ function: { name, arguments: text } }] = message.tool_calls;
    assert.ok(isTurn(name, JSON.parse(text)), text);
  }
  const free = await bothWays({ messages: ask('Hello'), tools: [turn] });
  assert.equal(free.message.content, 'Hello, world.');
});

test('errors are typed', async () => {
  const create = (request) => client.chat.completions.create({ model, messages: ask('Hello'), ...request });
  const refusals = [
    [{ temperature: 3 }, /temperature/],
    [{ messages: [] }, /messages/],
    [{ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:' } }] }] }, /image_url/],
    [{ nonsense: 1 }, /nonsense/],
    [{ tools, tool_choice: { type: 'function', function: { name: 'turn' } } }, /tool_choice.*turn/],
    [{ tool_choice: 'required' }, /tool_choice/],
    [{ response_format: { type: 'json_schema', json_schema: { name: 'x' } } }, /json_schema.schema/],
    [{ response_format: { type: 'xml' } }, /response_format.type.*xml/],
  ];
  for (const [request, message] of refusals) {
    for (const stream of [false, true]) {
      await assert.rejects(create({ ...request, stream }), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError, `${error}`);
        assert.equal(error.type, 'invalid_request_error');
        assert.match(error.message, message);
        return true;
      });
    }
  }
  const long = 'x'.repeat(200_000);
  await assert.rejects(create({ messages: ask(long) }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError, `${error}`);
    assert.equal(error.code, 'context_length_exceeded');
    return true;
  });
  await assert.rejects(client.models.retrieve('other'), OpenAI.NotFoundError);
  await assert.rejects(client.get('/nothing'), OpenAI.NotFoundError);
  const stranger = client.withOptions({ apiKey: 'another-key' });
  await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
  await assert.rejects(stranger.chat.completions.create({ model, messages: ask('Hello') }),
                       OpenAI.AuthenticationError);
});
