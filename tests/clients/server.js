// The server under test (scripts/test-clients starts it), and what several clients' tests share.
import assert from 'node:assert/strict';
import process from 'node:process';

function fromEnvironment(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run scripts/test-clients`);
  return value;
}

export const address = fromEnvironment('INLAY_TEST_ADDRESS'); // http://127.0.0.1:PORT
export const key = fromEnvironment('INLAY_API_KEY');
export const model = 'scripted';

// The tools that the script's answers call.
export const addParameters = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
  additionalProperties: false,
};
export const weatherParameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
// No answer of the script calls this tool: only who must call does.
export const turnParameters = {
  type: 'object',
  properties: { side: { type: 'string', enum: ['left', 'right'] } },
  required: ['side'],
  additionalProperties: false,
};
export const isTurn = (name, { side, ...others }) =>
  name === 'turn' && ['left', 'right'].includes(side) && Object.keys(others).length === 0;
export const weather = { Paris: 'sun', Rome: 'rain' };

// The number that /metrics has by this name.
export async function metric(name) {
  const reply = await fetch(`${address}/metrics`, { headers: { authorization: `Bearer ${key}` } });
  const line = (await reply.text()).split('\n').find((text) => text.startsWith(`${name} `));
  assert.ok(line, `/metrics has no ${name}`);
  return Number(line.split(' ')[1]);
}

// Returns when the server has cancelled `count` answers since it had cancelled `before` of them. The
// test's own time limit ends the wait.
export async function untilCancelled(before, count = 1) {
  while ((await metric('inlay_answers_cancelled_total')) < before + count)
    await new Promise((resolve) => setTimeout(resolve, 20));
}

export async function collect(stream) {
  const all = [];
  for await (const item of stream) all.push(item);
  return all;
}
