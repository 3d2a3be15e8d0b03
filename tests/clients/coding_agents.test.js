// Requests in the shape in which coding agents send them: every field that Codex 0.169, Claude Code
// 2.1, opencode 1.18 and Qwen Code 0.15 were seen to send, with short texts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { addParameters, address, collect, key, model } from './server.js';

const openai = new OpenAI({ baseURL: `${address}/v1`, apiKey: key, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: address, apiKey: key, authToken: null, maxRetries: 0 });

const text = (type, ...texts) => texts.map((part) => ({ type, text: part }));

// What Codex sends of itself with each request.
const codex = {
  model,
  stream: true,
  store: false,
  include: ['reasoning.encrypted_content'],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { summary: 'auto' },
  prompt_cache_key: 'a-thread',
  client_metadata: { thread_id: 'a-thread', turn_id: 'a-turn' },
  tools: [
    { type: 'function', name: 'add', description: 'Adds.', strict: false, parameters: addParameters },
    {
      type: 'namespace',
      name: 'agents',
      description: 'Tools for other agents.',
      tools: [{ type: 'function', name: 'wait', description: 'Waits.', strict: false,
                parameters: { type: 'object', properties: {} } }],
    },
    { type: 'web_search', external_web_access: false },
  ],
};
const codexInput = (question) => [
  { type: 'message', id: 'msg_1', role: 'developer', content: text('input_text', 'You are an agent.') },
  { type: 'message', id: 'msg_2', role: 'user', content: text('input_text', '<environment_context/>') },
  { type: 'message', id: 'msg_3', role: 'user', content: text('input_text', question) },
];

// The items of an answer, as Codex takes them from the stream.
async function codexTurn(input) {
  const events = await collect(await openai.responses.create({ ...codex, input }));
  assert.equal(events.at(-1).type, 'response.completed');
  return events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item);
}

test('codex: a call and its result', async () => {
  const input = codexInput('Add 2 and 3, twice');
  const answers = [];
  for (let turn = 0; turn < 3; ++turn) {
    const items = await codexTurn(input);
    input.push(...items);
    for (const { type, name, call_id, arguments: json, content } of items) {
      if (type === 'message') answers.push(content[0].text);
      if (type !== 'function_call') continue;
      assert.equal(name, 'add');
      const { a, b } = JSON.parse(json);
      input.push({ type: 'function_call_output', id: `fco_${turn}`, call_id, output: `${a + b}` });
    }
  }
  assert.deepEqual(answers, ['Twice 5 is 10.']);
});

test('codex: a function of a namespace', async () => {
  const input = codexInput('Wait');
  const items = await codexTurn(input);
  const [{ type, namespace, name, arguments: json, call_id }] = items;
  assert.deepEqual([type, namespace, name, json], ['function_call', 'agents', 'wait', '{}']);
  input.push(...items, { type: 'function_call_output', call_id, output: 'done' });
  const [{ content }] = await codexTurn(input);
  assert.equal(content[0].text, 'All are here.');
});

// What Claude Code sends of itself with each request. The first line changes from one to the next.
const claudeCode = (billing) => ({
  model,
  max_tokens: 1000,
  thinking: { type: 'adaptive' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  output_config: { effort: 'high' },
  metadata: { user_id: '{"session_id":"a-session"}' },
  betas: ['claude-code-20250219', 'interleaved-thinking-2025-05-14', 'effort-2025-11-24'],
  system: [
    { type: 'text', text: `x-anthropic-billing-header: cc_version=${billing};` },
    { type: 'text', text: 'You are an agent.', cache_control: { type: 'ephemeral' } },
  ],
  tools: [{ name: 'add', description: 'Adds.', input_schema: addParameters }],
});
const claudeMessages = (question) => [
  { role: 'user', content: text('text', '<system-reminder/>', question) },
  { role: 'system', content: 'Of agents there are these.' },
];

test('claude code: a call and its result', async () => {
  const messages = claudeMessages('Add 2 and 3');
  const call = (billing) => anthropic.beta.messages.stream({ ...claudeCode(billing), messages }).finalMessage();
  const first = await call('2.1.1');
  assert.equal(first.stop_reason, 'tool_use');
  const [{ id, input: { a, b } }] = first.content.filter(({ type }) => type === 'tool_use');
  messages.push({ role: 'assistant', content: first.content }, {
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: id, content: `${a + b}`, is_error: false,
                cache_control: { type: 'ephemeral' } }],
  });
  const second = await call('2.1.2');
  assert.equal(second.content.at(-1).text, '5, as thought.');
  // What the first request has computed is used again.
  assert.ok(second.usage.cache_read_input_tokens >= first.usage.input_tokens / 2);
});

test('claude code: the billing line is no part of the prompt', async () => {
  const count = async (billing) => {
    const { max_tokens, metadata, ...request } = claudeCode(billing);
    const messages = claudeMessages('Hello');
    return (await anthropic.beta.messages.countTokens({ ...request, messages })).input_tokens;
  };
  assert.equal(await count('2'), await count('2.1.1.1'));
});

test('opencode, qwen code: a call and its result', async () => {
  const messages = [
    { role: 'system', content: 'You are an agent.' },
    { role: 'user', content: text('text', 'This is the context.') },
    { role: 'assistant', content: 'Got it.' },
    { role: 'user', content: text('text', 'Add 2 and 3') },
  ];
  const request = {
    model,
    max_tokens: 1000,
    stream: true,
    stream_options: { include_usage: true },
    tool_choice: 'auto',
    tools: [{ type: 'function', function: { name: 'add', description: 'Adds.', parameters: {
      $schema: 'https://json-schema.org/draft/2020-12/schema', ...addParameters } } }],
  };
  const first = await openai.chat.completions.stream({ ...request, messages }).finalMessage();
  const [{ id }] = first.tool_calls;
  const { parsed, ...message } = first;
  messages.push({ ...message, content: message.content ?? '' });
  messages.push({ role: 'tool', tool_call_id: id, content: text('text', '5') });
  const second = await openai.chat.completions.stream({ ...request, messages }).finalContent();
  assert.equal(second, '2 + 3 = 5.');
});
