// check.mjs READ_BY_SCHEMA [SCHEMAS [SEED]]: holds the grammars of random schemas against the validator
// ajv. What a grammar accepts must be valid, and what serializers write and is valid must be accepted,
// also where white space is kept to theirs.
import { spawnSync } from 'node:child_process';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { Generator } from './generate.mjs';
import { Random } from './random.mjs';

const [program, count = '2000', firstSeed = '1'] = process.argv.slice(2);

// The value with white space where JSON allows it, and with any escapes.
function loosely(value, random) {
  const space = () => random.chance(0.8) ? '' : random.pick([' ', '\n', '\t ', '\r\n  ']);
  const string = (text) => '"' + [...text].map((c) => {
    const plain = JSON.stringify(c).slice(1, -1);
    if (random.chance(0.9)) return plain;
    const units = [...Array(c.length).keys()].map((i) => '\\u' + c.charCodeAt(i).toString(16).padStart(4, '0'));
    return random.chance(0.5) ? units.join('') : units.join('').toUpperCase().replaceAll('\\U', '\\u');
  }).join('') + '"';
  const write = (part) => {
    if (typeof part === 'string') return string(part);
    if (Array.isArray(part)) return '[' + space() + part.map((item) => write(item)).join(space() + ',' + space()) + space() + ']';
    if (part === null || typeof part !== 'object') return random.chance(0.1) && Number.isInteger(part) && Math.abs(part) < 1e15 ? part + '.0' : JSON.stringify(part);
    return '{' + space() + Object.entries(part).map(([name, member]) => JSON.stringify(name) + space() + ':' + space() + write(member)).join(space() + ',' + space()) + space() + '}';
  };
  return space() + write(value) + space();
}

// As json.dumps writes it in Python on one line.
function onOneLine(value) {
  if (Array.isArray(value)) return '[' + value.map(onOneLine).join(', ') + ']';
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  return '{' + Object.entries(value).map(([name, member]) => JSON.stringify(name) + ': ' + onOneLine(member)).join(', ') + '}';
}

// A small change of the text, which may make it something that is not JSON.
function damaged(text, random) {
  const characters = [...text];
  const at = random.integer(0, characters.length);
  const insert = random.chance(0.6) ? random.pick([...'{}[]",:0159.-e+\\u \n', 'null', '00', '""']) : '';
  characters.splice(at, random.integer(0, insert ? 1 : 2), insert);
  return characters.join('');
}

// Numbers that grammars leave out, or that ajv does not judge exactly: whole ones that JSON.stringify
// writes with an exponent, ones beyond int64, multiples with too many digits or next to 0.
function isUnusual(number, schemaText) {
  const size = Math.abs(number);
  return size >= 1e21 || (size >= 2 ** 63 && schemaText.includes('int64'))
    || (schemaText.includes('multipleOf') && (String(size).length > 15 || (size > 0 && size < 1e-300)));
}

function hasUnusualNumber(value, schemaText) {
  if (typeof value === 'number') return isUnusual(value, schemaText);
  return value !== null && typeof value === 'object' && Object.values(value).some((part) => hasUnusualNumber(part, schemaText));
}

function makeCase(seed) {
  const { schema, documents } = new Generator(seed).case();
  const random = new Random(seed ^ 0x5eed);
  const schemaText = JSON.stringify(schema);
  const texts = [];
  for (const { value, usual } of documents) {
    const must = (usual || !schemaText.includes('"format"')) && !hasUnusualNumber(value, schemaText);
    texts.push({ text: JSON.stringify(value), must }, { text: onOneLine(value), must });
    texts.push({ text: JSON.stringify(value, null, random.pick([1, 2, 4, '\t'])), must });
    texts.push({ text: loosely(value, random), must: false });
    texts.push({ text: damaged(JSON.stringify(value), random), must: false });
  }
  return { seed, schema, schemaText, texts };
}

function verdict(validate, text) {
  try {
    return validate(JSON.parse(text));
  } catch {
    return false;
  }
}

const cases = Array.from({ length: Number(count) }, (_, i) => makeCase(Number(firstSeed) + i));
const input = cases.map(({ schemaText, texts }) => JSON.stringify({ schema: schemaText, documents: texts.map(({ text }) => text) })).join('\n') + '\n';
const run = spawnSync(program, { input, maxBuffer: 2 ** 30 });
const answers = run.stdout.toString().trim().split('\n').map((line) => JSON.parse(line));
if (run.status !== 0 || answers.length !== cases.length) {
  console.error(`${program} ended with ${run.status ?? run.signal} at case ${answers.length}: ${run.stderr}`);
  process.exit(1);
}

const counts = { schemas: cases.length, refused: 0, unmatched: 0, accepted: 0, valid: 0, checked: 0, wrong: 0 };
const wrong = (what, { seed, schemaText }, text) => {
  if (++counts.wrong <= 10) console.error(`seed ${seed}: ${what}\n  schema ${schemaText}\n  document ${text}`);
};
cases.forEach((one, i) => {
  const ajv = addFormats(new Ajv2020({ strict: false }));
  const validate = ajv.compile(one.schema);
  const verdicts = one.texts.map(({ text }) => verdict(validate, text));
  if (answers[i].error) {
    const isEmpty = /no (text|value is valid)/.test(answers[i].error);
    ++counts[isEmpty ? 'unmatched' : 'refused'];
    if (!isEmpty && !answers[i].error.includes('not supported')) wrong(answers[i].error, one, '');
    if (isEmpty) one.texts.forEach(({ text, must }, j) => { if (verdicts[j] && must) wrong('a schema without texts has one', one, text); });
    return;
  }
  one.texts.forEach(({ text, must }, j) => {
    ++counts.checked;
    counts.valid += verdicts[j];
    counts.accepted += answers[i].accepts[j];
    if (answers[i].accepts[j] && !verdicts[j]) wrong('the grammar accepts what is not valid', one, text);
    if (verdicts[j] && must && !answers[i].serialized[j]) wrong('the grammar of serialized texts refuses one', one, text);
    if (answers[i].serialized[j] && !answers[i].accepts[j]) wrong('the grammar refuses what is serialized', one, text);
  });
});
console.log(JSON.stringify(counts));
// Most schemas that the generator makes are supported: else this would test little.
if (counts.refused > counts.schemas / 20) wrong('too many schemas are refused', cases[0], '');
process.exit(counts.wrong === 0 ? 0 : 1);
