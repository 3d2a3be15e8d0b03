// What the page makes of sessions, without a page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  alignTokens, entriesOf, rowsOf, segmentsOf, treeOf, variantsOf,
} from '../../serve/page/conversation.js';
import { codeParts } from '../../serve/page/code.js';
import { medianOf, parseMetrics } from '../../serve/page/figures.js';

// A session whose tokens are letters: "Ab" is a prompt of one and an answer of one.
function session(name, turns, more = {}) {
  let at = 0;
  let tokens = '';
  const made = turns.map(([prompt, answer], i) => {
    const turn = {
      version: i + 1, kind: 'answer', begin: at, answer: at + prompt.length, end: at + prompt.length + answer.length,
      intact: true, created: 10 + i, messages: [{ role: 'user', content: prompt }], message: { role: 'assistant', content: answer },
    };
    at = turn.end;
    tokens += prompt + answer;
    return turn;
  });
  return {
    name, root: '', messages: [], turns: made, length: at, created: 1, updated: 1, version: turns.length,
    tokens: [...tokens].map((letter) => letter.charCodeAt(0)), texts: [...tokens],
    sizes: [...tokens].map(() => 1), ...more,
  };
}

const shape = (node) => [node.owner?.texts.slice(node.from, node.to).join('') ?? '', ...node.children.map(shape)];

test('a tree has what sessions share once', () => {
  const a = session('a', [['AA', 'bbb'], ['CC', 'ddd']]);
  const b = session('b', [['AA', 'bbx']]);
  const c = session('c', [['AA', 'bbb'], ['CE', 'f']]);
  assert.deepEqual(shape(treeOf([a, b, c])),
    ['', ['AA', ['bb', ['b', ['C', ['C', ['ddd']], ['E', ['f']]]], ['x']]]]);
});

test('each session can be read off its path', () => {
  let seed = 7;
  const random = (most) => {
    seed = (seed * 48271) % 2147483647;
    return seed % most;
  };
  const word = () => [...Array(1 + random(4))].map(() => 'ab'[random(2)]).join('');
  for (let round = 0; round < 200; ++round) {
    const sessions = [...Array(1 + random(5))].map((_, i) =>
      session(`s${i}`, [...Array(1 + random(3))].map(() => [word(), word()])));
    const tree = treeOf(sessions);
    for (const one of sessions) {
      let node = tree;
      let path = '';
      const roles = [];
      for (;;) {
        const next = node.children.find((child) => child.sessions.includes(one));
        if (next === undefined) break;
        path += next.owner.texts.slice(next.from, next.to).join('');
        for (let i = next.from; i < next.to; ++i) roles.push(next.role);
        node = next;
      }
      assert.equal(path, one.texts.join(''));
      assert.deepEqual(roles, segmentsOf(one).flatMap(({ role, from, to }) => Array(to - from).fill(role)));
    }
    const count = (node) => 1 + node.children.reduce((sum, child) => sum + count(child), 0);
    const rows = rowsOf(tree);
    assert.equal(rows.length, count(tree) - 1);
    rows.forEach((row, i) => assert.ok(row.parent < i));
    // Two nodes of one lane follow each other: no lines cross a dot.
    const lanes = rows.map((row) => row.lane);
    rows.forEach((row, i) => {
      if (row.parent < 0 || rows[row.parent].lane !== row.lane) return;
      assert.ok(!lanes.slice(row.parent + 1, i).includes(row.lane));
    });
  }
});

test('variants are the ways in which sessions went on', () => {
  const a = session('a', [['A', 'b'], ['C', 'd']]);
  const edited = session('edited', [['A', 'b'], ['E', 'd']]);
  const again = session('again', [['A', 'b'], ['C', 'x']]);
  again.turns[1].created = 50;
  const cut = session('cut', [['A', 'b'], ['C', '']]);
  const all = [a, edited, again, cut];
  assert.deepEqual(variantsOf(all, a, 1, 'prompt'), { names: ['a', 'edited'], current: 0 });
  assert.deepEqual(variantsOf(all, a, 1, 'answer'), { names: ['a', 'again'], current: 0 });
  assert.deepEqual(variantsOf(all, again, 1, 'answer').names[1], 'again');
  assert.deepEqual(variantsOf(all, a, 0, 'prompt').names.length, 1);
});

test('tokens are found in a text, parts of characters among them', () => {
  const texts = ['<think>', 'é', '\ufffd', '\ufffd', '!', ' b'];
  const one = { texts, tokens: [...texts.keys()], sizes: [7, 2, 3, 1, 1, 2] };
  const parts = alignTokens(one, 0, 6, 'é\u{1f600}! b');
  assert.deepEqual(parts.map(({ token, from, to }) => [token, from, to]), [[1, 0, 1], [2, 1, 3], [4, 3, 4], [5, 4, 6]]);
  assert.deepEqual(alignTokens(one, 0, 6, 'another text'), []);
});

test('an answer is shown with what it was continued by', () => {
  const one = session('one', [['A', 'b'], ['', 'cd']]);
  one.turns[1].kind = 'continuation';
  one.turns[1].message = { role: 'assistant', content: 'bcd' };
  const entries = entriesOf(one);
  assert.equal(entries.length, 2);
  assert.deepEqual([entries[1].from, entries[1].to, entries[1].last, entries[1].message.content], [1, 4, 1, 'bcd']);
});

test('code is the same text in colours', () => {
  const code = 'int x = 0x1f; // why "not"\nif (x) return \'c\';\n# y\n/* open';
  const parts = codeParts(code);
  assert.equal(parts.map((part) => part.text).join(''), code);
  parts.forEach((part) => assert.equal(code.slice(part.at, part.at + part.text.length), part.text));
  const kinds = Object.fromEntries(parts.map((part) => [part.text, part.kind]));
  assert.equal(kinds.return, 'keyword');
  assert.equal(kinds['0x1f'], 'number');
  assert.equal(kinds['// why "not"'], 'comment');
  assert.equal(kinds['/* open'], 'comment');
});

test('metrics are read', () => {
  const values = parseMetrics('# HELP inlay_a b c\ninlay_a 4\ninlay_t_bucket{le="0.1"} 1\ninlay_t_bucket{le="1"} 3\ninlay_t_count 4\n');
  assert.equal(values.get('a'), 4);
  assert.equal(medianOf(values, 't'), 1);
  assert.ok(Number.isNaN(medianOf(values, 'none')));
});
