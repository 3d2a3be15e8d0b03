// Answers of a given shape, through each client: what arrives is valid by the schema that was sent.
//
// Where the script's answer fits a shape the model writes it; elsewhere all that the shape allows is
// equally likely, as of a model with random weights, which ends as soon as it may.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { APICallError, generateObject, generateText, Output, streamText } from 'ai';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { Generator } from '../schemas/generate.mjs';
import { address, collect, key, model } from './server.js';

const openai = new OpenAI({ baseURL: `${address}/v1`, apiKey: key, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: address, apiKey: key, authToken: null, maxRetries: 0 });
const ai = createOpenAICompatible(
  { name: 'inlay', baseURL: `${address}/v1`, apiKey: key, supportsStructuredOutputs: true })(model);

const ask = (content) => [{ role: 'user', content }];
// The script's answer fits this one.
const Place = z.object({ city: z.string(), degrees: z.int().min(-60).max(60) });
const paris = { city: 'Paris', degrees: 21 };
// And no script this.
const Flight = z.object({
  from: z.enum(['Paris', 'Rome']),
  to: z.string().max(8),
  legs: z.array(z.object({ hours: z.number().min(0).max(20), meal: z.boolean() })).min(1).max(3),
  note: z.union([z.null(), z.string().max(5)]),
});
const choose = { enum: ['a', 'b'] };

const asFormat = (schema, strict = true) => ({ type: 'json_schema', json_schema: { name: 'answer', strict, schema } });

// Whatever draft the client names.
function assertValid({ $schema, ...schema }, text) {
  const validate = addFormats(new Ajv2020({ strict: false })).compile(schema);
  assert.ok(validate(JSON.parse(text)), `${text}\n${JSON.stringify(schema)}\n${JSON.stringify(validate.errors)}`);
}

test('chat: json_schema', async () => {
  const request = { model, messages: ask('Place'), response_format: zodResponseFormat(Place, 'place') };
  const [{ message, finish_reason }] = (await openai.chat.completions.parse(request)).choices;
  assert.deepEqual(message.parsed, paris);
  assert.equal(finish_reason, 'stop');
  const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
  assert.deepEqual(streamed.choices[0].message.parsed, paris);
  assert.equal(streamed.choices[0].message.content, message.content);
});

test('chat: a schema that no script fits', async () => {
  const format = zodResponseFormat(Flight, 'flight');
  const { schema } = format.json_schema;
  const request = { model, messages: ask('Hello'), response_format: format, n: 4, seed: 7 };
  const { choices } = await openai.chat.completions.parse(request);
  const texts = choices.map(({ message }) => message.content);
  for (const { message, finish_reason } of choices) {
    assert.equal(finish_reason, 'stop');
    assertValid(schema, message.content);
    Flight.parse(message.parsed);
  }
  assert.ok(new Set(texts).size > 1, texts[0]);
  // Members come in the order of a strict schema, and in any order of others.
  const inOrder = (text) => Object.keys(JSON.parse(text)).join() === 'from,to,legs,note';
  assert.ok(texts.every(inOrder), texts);
  const loose = await openai.chat.completions.create({ ...request, response_format: asFormat(schema, false) });
  for (const { message } of loose.choices) assertValid(schema, message.content);
  assert.ok(!loose.choices.every(({ message }) => inOrder(message.content)));
  // The same seed gives the same bytes, also in a stream and with log probabilities.
  const streamed = Array(4).fill('');
  const stream = await openai.chat.completions.create({ ...request, stream: true });
  for await (const chunk of stream)
    for (const { index, delta } of chunk.choices) streamed[index] += delta.content ?? '';
  assert.deepEqual(streamed, texts);
  const probable = await openai.chat.completions.create({ ...request, logprobs: true, top_logprobs: 3 });
  assert.deepEqual(probable.choices.map(({ message }) => message.content), texts);
  for (const { message, logprobs } of probable.choices) {
    const bytes = logprobs.content.flatMap((token) => token.bytes);
    assert.equal(Buffer.from(bytes).toString(), message.content);
    for (const { logprob } of logprobs.content) assert.ok(logprob <= 0, `${logprob}`);
  }
});

test('chat: json_object', async () => {
  const request = { model, response_format: { type: 'json_object' } };
  const place = await openai.chat.completions.create({ ...request, messages: ask('Place') });
  assert.deepEqual(JSON.parse(place.choices[0].message.content), paris);
  const { choices } = await openai.chat.completions.create(
    { ...request, messages: ask('Hello'), n: 8, seed: 1, max_tokens: 400 });
  const complete = choices.filter(({ finish_reason }) => finish_reason === 'stop');
  assert.ok(complete.length > 0);
  for (const { message } of complete) {
    const value = JSON.parse(message.content);
    assert.ok(value !== null && typeof value === 'object' && !Array.isArray(value), message.content);
  }
  // Without a shape the model says what it always says.
  const text = await openai.chat.completions.create(
    { model, messages: ask('Hello'), response_format: { type: 'text' } });
  assert.equal(text.choices[0].message.content, 'Hello, world.');
});

test('chat: stop sequences and lengths cut a shape off', async () => {
  const request = { model, messages: ask('Place'), response_format: zodResponseFormat(Place, 'place') };
  const stopped = await openai.chat.completions.create({ ...request, stop: ['"degrees"'] });
  assert.equal(stopped.choices[0].message.content, '{"city": "Paris", ');
  assert.equal(stopped.choices[0].finish_reason, 'stop');
  const cut = await openai.chat.completions.create({ ...request, max_tokens: 2 });
  assert.equal(cut.choices[0].message.content, '{"city": "Paris",');
  assert.equal(cut.choices[0].finish_reason, 'length');
});

test('chat: a shape after thoughts', async () => {
  const request = { model, messages: ask('Ponder'), response_format: asFormat(choose) };
  const { choices: [{ message, finish_reason }] } = await openai.chat.completions.create(request);
  assert.equal(message.reasoning_content, 'Hm');
  assert.equal(message.content, '"b"');
  assert.equal(finish_reason, 'stop');
  const other = await openai.chat.completions.create(
    { ...request, response_format: asFormat({ const: 'c' }) });
  assert.equal(other.choices[0].message.reasoning_content, 'Hm');
  assert.equal(other.choices[0].message.content, '"c"');
});

test('chat: a grammar', async () => {
  const create = (grammar) => openai.chat.completions.create({ model, messages: ask('Hello'), grammar });
  const { choices: [{ message }] } = await create('root ::= "Hello" [!?]{2}');
  assert.match(message.content, /^Hello[!?]{2}$/);
  await assert.rejects(create('root ::= word'), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError, `${error}`);
    assert.match(error.message, /'word'/);
    return true;
  });
});

test('responses: text.format', async () => {
  const request = { model, input: 'Place', text: { format: zodTextFormat(Place, 'place') } };
  const whole = await openai.responses.parse(request);
  assert.equal(whole.status, 'completed');
  assert.deepEqual(whole.output_parsed, paris);
  const stream = openai.responses.stream(request);
  const events = await collect(stream);
  const text = events.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta).join('');
  assert.equal(text, whole.output_text);
  assert.deepEqual((await stream.finalResponse()).output_parsed, paris);
  const flight = zodTextFormat(Flight, 'flight');
  const other = await openai.responses.parse({ model, input: 'Hello', text: { format: flight } });
  assertValid(flight.schema, other.output_text);
  const object = await openai.responses.create(
    { model, input: 'Place', text: { format: { type: 'json_object' } } });
  assert.deepEqual(JSON.parse(object.output_text), paris);
  const thought = await openai.responses.create(
    { model, input: 'Ponder', text: { format: { type: 'json_schema', name: 'choice', schema: choose } } });
  assert.deepEqual(thought.output.map(({ type }) => type), ['reasoning', 'message']);
  assert.equal(thought.output_text, '"b"');
});

test('messages: output_config.format', async () => {
  const request = { model, max_tokens: 2000, messages: ask('Place'), output_config: { format: zodOutputFormat(Place) } };
  const whole = await anthropic.messages.parse(request);
  assert.deepEqual(whole.parsed_output, paris);
  assert.equal(whole.stop_reason, 'end_turn');
  const streamed = await anthropic.messages.stream(request).finalMessage();
  assert.deepEqual(streamed.content, whole.content);
  assert.deepEqual(streamed.parsed_output, paris);
  // The client's own helper would leave limits out of the schema.
  const schema = z.toJSONSchema(Flight);
  const other = await anthropic.messages.create(
    { ...request, messages: ask('Hello'), output_config: { format: { type: 'json_schema', schema } } });
  assert.equal(other.stop_reason, 'end_turn');
  assertValid(schema, other.content[0].text);
  const thought = await anthropic.messages.create(
    { ...request, messages: ask('Ponder'), output_config: { format: { type: 'json_schema', schema: choose } } });
  assert.deepEqual(thought.content.map(({ type }) => type), ['thinking', 'text']);
  assert.equal(thought.content[1].text, '"b"');
});

test('ai: objects', async () => {
  const request = { model: ai, maxRetries: 0, prompt: 'Place' };
  const { output } = await generateText({ ...request, output: Output.object({ schema: Place }) });
  assert.deepEqual(output, paris);
  const { object } = await generateObject({ ...request, schema: Place });
  assert.deepEqual(object, paris);
  const streamed = streamText({ ...request, output: Output.object({ schema: Place }) });
  const partial = await collect(streamed.partialOutputStream);
  assert.deepEqual(partial.at(-1), paris);
  assert.deepEqual(await streamed.output, paris);
  // The client checks this one itself.
  await generateText({ ...request, prompt: 'Hello', output: Output.object({ schema: Flight }) });
  const choice = await generateText({ ...request, prompt: 'Hello', output: Output.choice({ options: ['x', 'y'] }) });
  assert.ok(['x', 'y'].includes(choice.output));
});

test('what no grammar can hold is refused', async () => {
  const schema = { type: 'object', properties: { a: { not: { type: 'string' } } } };
  const says = (error) => {
    assert.match(error.message, /keyword 'not' at #\/properties\/a/);
    return true;
  };
  const responseFormat = { type: 'json_schema', name: 'answer', schema };
  for (const stream of [false, true]) {
    const requests = [
      () => openai.chat.completions.create({ model, messages: ask('Hello'), stream, response_format: asFormat(schema) }),
      () => openai.responses.create({ model, input: 'Hello', stream, text: { format: responseFormat } }),
    ];
    for (const request of requests) {
      // One after the other: a rejection that nobody waits for yet would end the test.
      await assert.rejects(request(), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError, `${error}`);
        assert.equal(error.type, 'invalid_request_error');
        return says(error);
      });
    }
    const messages = anthropic.messages.create({
      model, max_tokens: 9, messages: ask('Hello'), stream, output_config: { format: { type: 'json_schema', schema } } });
    await assert.rejects(messages, (error) => {
      assert.ok(error instanceof Anthropic.BadRequestError, `${error}`);
      assert.equal(error.error.error.type, 'invalid_request_error');
      return says(error);
    });
  }
  const none = z.object({ a: z.string() }).catchall(z.never()).meta({ patternProperties: { b: {} } });
  const refused = generateText({ model: ai, maxRetries: 0, prompt: 'Hello', output: Output.object({ schema: none }) });
  await assert.rejects(refused, (error) => {
    assert.ok(APICallError.isInstance(error), `${error}`);
    assert.equal(error.statusCode, 400);
    assert.match(error.message, /keyword 'patternProperties'/);
    return true;
  });
});

// Whatever the weights: an answer that has ended is valid.
test('random schemas', async () => {
  const counts = { refused: 0, cut: 0, valid: 0 };
  const check = async (seed) => {
    const { schema } = new Generator(seed).case();
    const request = { model, messages: ask('Hello'), seed, max_tokens: 1000, response_format: asFormat(schema, seed % 2 === 0) };
    let reply;
    try {
      reply = await openai.chat.completions.create(request);
    } catch (error) {
      assert.match(error.message, /not supported|no text|no value is valid/);
      ++counts.refused;
      return;
    }
    const [{ message, finish_reason }] = reply.choices;
    if (finish_reason !== 'stop') {
      assert.equal(finish_reason, 'length');
      ++counts.cut;
      return;
    }
    // Of numbers with more digits than a double ajv cannot tell.
    if (/\d{16}/.test(message.content)) JSON.parse(message.content);
    else assertValid(schema, message.content);
    ++counts.valid;
  };
  const seeds = Array.from({ length: 60 }, (_, i) => i + 1);
  while (seeds.length) await Promise.all(seeds.splice(0, 10).map(check));
  assert.ok(counts.valid >= 50, JSON.stringify(counts));
});
