// The package @anthropic-ai/sdk.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import {
  addParameters, address, collect, isTurn, key, metric, model, turnParameters, untilCancelled, weather,
  weatherParameters,
} from './server.js';

const client = new Anthropic({ baseURL: address, apiKey: key, authToken: null, maxRetries: 0 });

const ask = (content) => [{ role: 'user', content }];
const tools = [
  { name: 'add', description: 'Adds.', input_schema: addParameters },
  { name: 'weather', input_schema: weatherParameters },
];
const withoutIds = (content) => content.map(({ id, ...block }) => block);

// The streamed answer must be the whole one.
async function bothWays(request) {
  const all = { model, max_tokens: 100, ...request };
  const whole = await client.messages.create(all);
  const stream = client.messages.stream(all);
  let text = '';
  stream.on('text', (delta) => { text += delta; });
  const final = await stream.finalMessage();
  assert.deepEqual(withoutIds(final.content), withoutIds(whole.content));
  assert.equal(final.stop_reason, whole.stop_reason);
  assert.equal(final.stop_sequence, whole.stop_sequence);
  assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
  assert.equal(text, final.content.map((block) => block.text ?? '').join(''));
  return whole;
}

test('messages: a text', async () => {
  const { content, role, stop_reason, usage } = await bothWays({ messages: ask('Hello') });
  assert.deepEqual(content, [{ type: 'text', text: 'Hello, world.' }]);
  assert.equal(role, 'assistant');
  assert.equal(stop_reason, 'end_turn');
  assert.equal(usage.output_tokens, 4);
});

test('messages: the events of a stream', async () => {
  const thinking = { type: 'adaptive' };
  const events = await collect(await client.messages.create(
    { model, max_tokens: 100, messages: ask('Think'), thinking, stream: true }));
  const types = events.map(({ type }) => type);
  assert.equal(types[0], 'message_start');
  assert.deepEqual(types.slice(-2), ['message_delta', 'message_stop']);
  const blocks = events.filter(({ type }) => type === 'content_block_start');
  assert.deepEqual(blocks.map(({ content_block: { type } }) => type), ['thinking', 'text']);
  assert.deepEqual(blocks.map(({ index }) => index), [0, 1]);
});

test('messages: thoughts', async () => {
  const thinking = { type: 'enabled', budget_tokens: 1024 };
  const { content } = await bothWays({ messages: ask('Think'), max_tokens: 2000, thinking });
  assert.equal(content[0].type, 'thinking');
  assert.equal(content[0].thinking, 'Two twos.');
  assert.ok(content[0].signature);
  assert.deepEqual(content.slice(1), [{ type: 'text', text: 'Four.' }]);
  // The template thinks unless it is told not to, the protocol only where it is asked to.
  for (const others of [{ thinking: { type: 'disabled' } }, {}]) {
    const unthought = await bothWays({ messages: ask('Think'), ...others });
    assert.deepEqual(unthought.content, [{ type: 'text', text: 'Four, at once.' }]);
  }
});

test('messages: stop_sequences, max_tokens', async () => {
  const stopped = await bothWays({ messages: ask('Hello'), stop_sequences: ['x', 'orl'] });
  assert.equal(stopped.content[0].text, 'Hello, w');
  assert.equal(stopped.stop_reason, 'stop_sequence');
  assert.equal(stopped.stop_sequence, 'orl');
  const cut = await bothWays({ messages: ask('Hello'), max_tokens: 2 });
  assert.equal(cut.content[0].text, 'Hello,');
  assert.equal(cut.stop_reason, 'max_tokens');
});

test('messages: a call and its result', async () => {
  const messages = ask([{ type: 'text', text: 'Add 2 and 3', cache_control: { type: 'ephemeral' } }]);
  const { content, stop_reason } = await bothWays({ messages, tools });
  assert.equal(stop_reason, 'tool_use');
  assert.deepEqual(content.map(({ type }) => type), ['thinking', 'tool_use']);
  const [thought, use] = content;
  assert.equal(use.name, 'add');
  assert.deepEqual(use.input, { a: 2, b: 3 });
  const then = (assistant, result) => (
    [...messages, { role: 'assistant', content: assistant },
     { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, ...result }] }]);
  const thoughtful = await bothWays({ messages: then([thought, use], { content: '5' }), tools });
  assert.equal(thoughtful.content[0].text, '5, as thought.');
  const blocks = [{ type: 'text', text: '5' }];
  const answer = await bothWays({ messages: then([use], { content: blocks }), tools });
  assert.equal(answer.content[0].text, '2 + 3 = 5.');
  const failed = await bothWays({ messages: then([use], { content: '5', is_error: true }), tools });
  assert.equal(failed.content[0].text, 'What?');
});

test('messages: parallel calls', async () => {
  const messages = ask('How is the weather in Paris and Rome?');
  const { content } = await bothWays({ messages, tools });
  assert.deepEqual(content.map(({ type }) => type), ['text', 'tool_use', 'tool_use']);
  const results = content.slice(1).map(({ id, input }) => (
    { type: 'tool_result', tool_use_id: id, content: weather[input.city] }));
  const next = [...messages, { role: 'assistant', content }, { role: 'user', content: results }];
  const answer = await bothWays({ messages: next, tools });
  assert.equal(answer.content[0].text, 'Sun in Paris, rain in Rome.');
  const one = await bothWays(
    { messages, tools, tool_choice: { type: 'auto', disable_parallel_tool_use: true } });
  assert.equal(one.content.filter(({ type }) => type === 'tool_use').length, 1);
  assert.equal(one.stop_reason, 'tool_use');
});

test('messages: calls that are demanded', async () => {
  const natural = await bothWays({ messages: ask('Add 2 and 3'), tools, tool_choice: { type: 'any' } });
  assert.deepEqual(natural.content.at(-1).input, { a: 2, b: 3 });
  const turn = { name: 'turn', input_schema: turnParameters };
  const { content, stop_reason } = await bothWays(
    { messages: ask('Hello'), tools: [...tools, turn], tool_choice: { type: 'tool', name: 'turn' }, temperature: 0 });
  assert.equal(stop_reason, 'tool_use');
  const uses = content.filter(({ type }) => type === 'tool_use');
  assert.equal(uses.length, 1);
  assert.ok(isTurn(uses[0].name, uses[0].input));
});

// The runner asks for a thread first, and goes on without where it is refused in the right words.
for (const stream of [false, true]) {
  test(`messages: the runner calls the tools itself, stream: ${stream}`, async () => {
    const calls = [];
    const run = (content) => client.beta.messages.toolRunner({
      model,
      max_tokens: 100,
      messages: ask(content),
      tools: [{
        ...tools[0], type: 'custom', parse: (input) => input,
        run: (input) => { calls.push(input); return String(input.a + input.b); },
      }],
      stream,
    });
    const message = await run('Add 2 and 3, twice').runUntilDone();
    assert.equal(message.content.at(-1).text, 'Twice 5 is 10.');
    assert.deepEqual(calls.splice(0), [{ a: 2, b: 3 }, { a: 5, b: 5 }]);
    // A call that the model did not write to its end is none.
    const broken = await run('Break').runUntilDone();
    assert.equal(broken.stop_reason, 'end_turn');
    assert.match(broken.content.at(-1).text, /<tool_call>\n\{"name": "add".*oops/);
    assert.deepEqual(calls, []);
  });
}

test('messages: count_tokens', async () => {
  const request = { model, system: 'Be short.', messages: ask('Hello'), tools };
  const { input_tokens } = await client.messages.countTokens(request);
  const { usage } = await client.messages.create({ ...request, max_tokens: 1 });
  assert.equal(input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
});

test('messages: an aborted stream ends the answer', async () => {
  const before = await metric('inlay_answers_cancelled_total');
  const stream = client.messages.stream({ model, max_tokens: 100_000, messages: ask('Tick') });
  let deltas = 0;
  stream.on('text', () => { if (++deltas === 9) stream.abort(); });
  await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
  await untilCancelled(before);
});

test('messages: errors are typed', async () => {
  const messages = ask('Hello');
  const refusals = [
    [{ temperature: 3 }, /temperature/],
    [{ messages: [] }, /messages/],
    [{ tool_choice: { type: 'any' } }, /tool_choice/],
    [{ tools, tool_choice: { type: 'tool', name: 'turn' } }, /tool_choice.*turn/],
    [{ output_config: { format: { type: 'json_schema' } } }, /output_config.format.schema/],
  ];
  for (const [request, message] of refusals) {
    for (const stream of [false, true]) {
      const create = client.messages.create({ model, max_tokens: 9, messages, ...request, stream });
      await assert.rejects(create, (error) => {
        assert.ok(error instanceof Anthropic.BadRequestError, `${error}`);
        assert.equal(error.error.type, 'error');
        assert.equal(error.error.error.type, 'invalid_request_error');
        assert.match(error.message, message);
        return true;
      });
    }
  }
  const stranger = client.withOptions({ apiKey: 'another-key' });
  await assert.rejects(stranger.messages.create({ model, max_tokens: 9, messages }), (error) => {
    assert.ok(error instanceof Anthropic.AuthenticationError, `${error}`);
    assert.equal(error.error.error.type, 'authentication_error');
    return true;
  });
  await assert.rejects(client.get('/v1/messages/nothing'), Anthropic.NotFoundError);
});

test('messages: a bearer token is a key, too', async () => {
  const bearer = new Anthropic({ baseURL: address, apiKey: null, authToken: key, maxRetries: 0 });
  const { content } = await bearer.messages.create({ model, max_tokens: 9, messages: ask('Hello') });
  assert.equal(content[0].text, 'Hello, world.');
});

test('models', async () => {
  const { data } = await client.models.list();
  assert.deepEqual(data.map(({ id }) => id), [model]);
});
