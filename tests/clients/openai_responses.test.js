// The package openai with responses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import {
  addParameters, address, collect, isTurn, key, metric, model, turnParameters, untilCancelled, weather,
  weatherParameters,
} from './server.js';

const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: key, maxRetries: 0 });

const tools = [
  { type: 'function', name: 'add', description: 'Adds.', parameters: addParameters, strict: true },
  { type: 'function', name: 'weather', parameters: weatherParameters, strict: false },
];

// What two replies to one request have in common: ids are new in each.
function essence(output) {
  return output.map(({ id, call_id, ...item }) => item);
}

// Checks that the events build up the response that the last of them brings.
function checkEvents(events) {
  assert.deepEqual(events.map(({ sequence_number }) => sequence_number), [...events.keys()]);
  assert.deepEqual(events.slice(0, 2).map(({ type }) => type),
                   ['response.created', 'response.in_progress']);
  const final = events.at(-1).response;
  const texts = final.output.map(() => '');
  const done = [];
  for (const event of events) {
    if (event.type === 'response.output_item.added') assert.equal(event.output_index, done.length);
    if (event.type.endsWith('.delta')) {
      assert.equal(event.item_id, final.output[event.output_index].id);
      texts[event.output_index] += event.delta;
    }
    if (event.type.endsWith('_text.done')) assert.equal(event.text, texts[event.output_index]);
    if (event.type === 'response.function_call_arguments.done')
      assert.equal(event.arguments, texts[event.output_index]);
    if (event.type === 'response.output_item.done') done.push(event.item);
  }
  assert.deepEqual(done, final.output);
  assert.deepEqual(texts, final.output.map((item) => item.arguments ?? item.content[0].text));
  return final;
}

// The streamed answer must be the whole one.
async function bothWays(request) {
  const whole = await client.responses.create({ model, ...request });
  const events = await collect(await client.responses.create({ model, ...request, stream: true }));
  const final = checkEvents(events);
  assert.deepEqual(essence(final.output), essence(whole.output));
  assert.equal(final.status, whole.status);
  assert.deepEqual(final.incomplete_details, whole.incomplete_details);
  return { ...whole, events };
}

test('responses: a text', async () => {
  const { output, output_text, status, usage, error } = await bothWays({ input: 'Hello' });
  assert.equal(output_text, 'Hello, world.');
  assert.deepEqual(output.map(({ type }) => type), ['message']);
  assert.equal(status, 'completed');
  assert.equal(error, null);
  assert.equal(usage.output_tokens, 4);
});

test('responses: thoughts', async () => {
  const { output, output_text, usage } = await bothWays({ input: 'Think' });
  assert.equal(output[0].type, 'reasoning');
  assert.deepEqual(output[0].content, [{ type: 'reasoning_text', text: 'Two twos.' }]);
  assert.equal(output_text, 'Four.');
  assert.equal(usage.output_tokens_details.reasoning_tokens, 4);
  const unthought = await bothWays({ input: 'Think', reasoning: { effort: 'none' } });
  assert.equal(unthought.output_text, 'Four, at once.');
});

test('responses: max_output_tokens', async () => {
  const { status, incomplete_details, output_text } =
    await bothWays({ input: 'Hello', max_output_tokens: 2 });
  assert.equal(status, 'incomplete');
  assert.equal(incomplete_details.reason, 'max_output_tokens');
  assert.equal(output_text, 'Hello,');
});

test('responses: a call and its result', async () => {
  const input = [{ role: 'user', content: 'Add 2 and 3' }];
  // Nothing is kept on the server: the client brings the thoughts back.
  const include = ['reasoning.encrypted_content'];
  const { output } = await bothWays({ input, tools, include });
  assert.deepEqual(output.map(({ type }) => type), ['reasoning', 'function_call']);
  const [reasoning, call] = output;
  assert.equal(call.name, 'add');
  assert.deepEqual(JSON.parse(call.arguments), { a: 2, b: 3 });
  const result = { type: 'function_call_output', call_id: call.call_id, output: '5' };
  const thoughtful = await bothWays({ input: [...input, ...output, result], tools });
  assert.equal(thoughtful.output_text, '5, as thought.');
  const { content, ...sealed } = reasoning;
  const unsealed = await bothWays({ input: [...input, sealed, call, result], tools });
  assert.equal(unsealed.output_text, '5, as thought.');
  const answer = await bothWays({ input: [...input, call, result], tools });
  assert.equal(answer.output_text, '2 + 3 = 5.');
});

test('responses: parallel calls', async () => {
  const input = [{ role: 'user', content: 'How is the weather in Paris and Rome?' }];
  const { output } = await bothWays({ input, tools });
  assert.deepEqual(output.map(({ type }) => type), ['message', 'function_call', 'function_call']);
  const results = output.filter(({ type }) => type === 'function_call').map((call) => (
    { type: 'function_call_output', call_id: call.call_id,
      output: weather[JSON.parse(call.arguments).city] }));
  const { output_text } = await bothWays({ input: [...input, ...output, ...results], tools });
  assert.equal(output_text, 'Sun in Paris, rain in Rome.');
  const one = await bothWays({ input, tools, parallel_tool_calls: false });
  assert.equal(one.output.filter(({ type }) => type === 'function_call').length, 1);
});

test('responses: calls that are demanded', async () => {
  const natural = await bothWays({ input: 'Add 2 and 3', tools, tool_choice: 'required' });
  assert.deepEqual(JSON.parse(natural.output.at(-1).arguments), { a: 2, b: 3 });
  const turn = { type: 'function', name: 'turn', parameters: turnParameters, strict: true };
  const { output } = await bothWays({ input: 'Hello', tools: [...tools, turn], temperature: 0,
    tool_choice: { type: 'function', name: 'turn' } });
  const calls = output.filter(({ type }) => type === 'function_call');
  assert.equal(calls.length, 1);
  assert.ok(isTurn(calls[0].name, JSON.parse(calls[0].arguments)));
});

test('responses: the stream helper', async () => {
  const stream = client.responses.stream({ model, input: 'Hello' });
  let text = '';
  stream.on('response.output_text.delta', ({ delta }) => { text += delta; });
  const final = await stream.finalResponse();
  assert.equal(text, 'Hello, world.');
  assert.equal(final.output_text, text);
});

test('responses: an aborted stream ends the answer', async () => {
  const before = await metric('inlay_answers_cancelled_total');
  const stream = await client.responses.create({ model, input: 'Tick', stream: true });
  let deltas = 0;
  for await (const { type } of stream) {
    if (type === 'response.output_text.delta' && ++deltas === 9) stream.controller.abort();
  }
  await untilCancelled(before);
});

test('responses: errors are typed', async () => {
  const refusals = [
    [{ input: 'Hello', previous_response_id: 'resp_1' }, /previous_response_id/],
    [{ input: 'Hello', store: true }, /store/],
    [{ input: [] }, /input/],
    [{ input: 'Add', tool_choice: 'required' }, /tool_choice/],
    [{ input: 'Add', tools, tool_choice: { type: 'function', name: 'turn' } }, /tool_choice.*turn/],
    [{ input: 'Hello', text: { format: { type: 'json_schema', name: 'x' } } }, /text.format.schema/],
  ];
  for (const [request, message] of refusals) {
    for (const stream of [false, true]) {
      await assert.rejects(client.responses.create({ model, ...request, stream }), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError, `${error}`);
        assert.match(error.message, message);
        return true;
      });
    }
  }
  await assert.rejects(client.responses.retrieve('resp_1'), OpenAI.NotFoundError);
});
