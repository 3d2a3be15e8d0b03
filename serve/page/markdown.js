// Markdown as models write it, as elements: the part of CommonMark without HTML, with tables, task lists and
// strikethrough of GitHub's flavour. No text becomes HTML, pictures are not loaded, and links open nothing by
// themselves. https://spec.commonmark.org/0.31.2/
//
// Every text node knows where in the source it stands, so that the page can tell which token wrote it.

import { setCode } from './code.js';
import { h } from './dom.js';

const kDeepest = 24;     // quotes and lists inside each other
const kOpenMarks = 200;  // emphasis that is not closed yet

/**
 * A line of a block: its text without the marks of the blocks around it, and where that stands in the source.
 * @typedef {{text: string, at: number}} Line
 *
 * Makes the nodes of a text that stands at `at` in the source.
 * @typedef {function(string, number): Array<Node>} Emit
 */

/** @type {Emit} */
const plain = (text) => [document.createTextNode(text)];

/**
 * The blocks of a text.
 * @param {string} source
 * @return {Array<{source: string, at: number, make: function(Emit): HTMLElement, grow: function(Element): boolean}>}
 *     in order; a block whose `source` is the same makes the same element. `grow` makes an element that an earlier
 *     state of the text has made for the block (undefined: none) the block's; false where it cannot.
 */
export function markdownBlocks(source) {
  const lines = [];
  let at = 0;
  for (const text of source.split('\n')) {
    lines.push({ text, at });
    at += text.length + 1;
  }
  return parseBlocks(lines, 0).map((block) => {
    const last = block.lines[block.lines.length - 1];
    const begin = block.lines[0].at;
    return {
      source: source.slice(begin, last.at + last.text.length),
      at: begin,
      make: (emit = plain) => makeBlock(block, emit),
      grow: (element) => block.kind === 'code' && growCode(element, block),
    };
  });
}

// Blocks.

const kFence = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,}(?!~))[ \t]*(\S*)/;
const kHeading = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const kRule = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const kQuote = /^ {0,3}> ?/;
const kItem = /^( {0,3})([-*+]|\d{1,9}[.)])(?:( +)(?=\S)| *$)/;
const kIndented = /^ {4,}\S/;
const kTableRule = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

const isBlank = (line) => line.text.trim() === '';
const cut = (line, count) => ({ text: line.text.slice(count), at: line.at + count });
const indent = (line) => line.text.length - line.text.trimStart().length;

function startsBlock(text) {
  return kFence.test(text) || kHeading.test(text) || kRule.test(text) || kQuote.test(text) || kItem.test(text);
}

function parseBlocks(lines, depth) {
  const blocks = [];
  let i = 0;
  while (i < lines.length) {
    if (isBlank(lines[i])) {
      ++i;
      continue;
    }
    const block = parseBlock(lines, i, depth);
    block.lines = lines.slice(i, i + block.length);
    blocks.push(block);
    i += block.length;
  }
  return blocks;
}

function parseBlock(lines, i, depth) {
  const { text } = lines[i];
  const fence = kFence.exec(text);
  if (fence !== null) return parseFence(lines, i, fence);
  const heading = kHeading.exec(text);
  if (heading !== null) {
    const content = heading[2] ?? '';
    const at = content === '' ? 0 : text.indexOf(content, text.indexOf('#') + heading[1].length);
    return { kind: 'heading', level: heading[1].length, length: 1, content: [{ text: content, at: lines[i].at + at }] };
  }
  if (kRule.test(text)) return { kind: 'rule', length: 1 };
  if (depth < kDeepest) {
    if (kQuote.test(text)) return parseQuote(lines, i, depth);
    if (kItem.test(text)) return parseList(lines, i, depth);
  }
  if (kIndented.test(text)) return parseIndented(lines, i);
  if (text.includes('|') && i + 1 < lines.length && kTableRule.test(lines[i + 1].text)) {
    const table = parseTable(lines, i);
    if (table !== null) return table;
  }
  return parseParagraph(lines, i);
}

function parseFence(lines, i, fence) {
  const strip = indent(lines[i]);
  const close = new RegExp(`^ {0,3}${fence[1][0] === '`' ? '`' : '~'}{${fence[1].length},}\\s*$`);
  let end = i + 1;
  while (end < lines.length && !close.test(lines[end].text)) ++end;
  return {
    kind: 'code',
    language: fence[2],
    content: lines.slice(i + 1, end).map((line) => cut(line, Math.min(strip, indent(line)))),
    length: Math.min(end + 1, lines.length) - i,
  };
}

function parseIndented(lines, i) {
  let end = i + 1;
  for (let next = end; next < lines.length && (isBlank(lines[next]) || kIndented.test(lines[next].text)); ++next) {
    if (!isBlank(lines[next])) end = next + 1;
  }
  const content = lines.slice(i, end).map((line) => cut(line, Math.min(4, indent(line))));
  return { kind: 'code', language: '', content, length: end - i };
}

function parseQuote(lines, i, depth) {
  let end = i;
  while (end < lines.length && !isBlank(lines[end]) &&
         (kQuote.test(lines[end].text) || !startsBlock(lines[end].text))) {
    ++end;
  }
  const inner = lines.slice(i, end).map((line) => cut(line, kQuote.exec(line.text)?.[0].length ?? 0));
  return { kind: 'quote', blocks: parseBlocks(inner, depth + 1), length: end - i };
}

function parseList(lines, i, depth) {
  const kindOf = (marker) => (/\d/.test(marker) ? marker[marker.length - 1] : marker);
  const first = kItem.exec(lines[i].text);
  const items = [];
  let end = i;
  let loose = false;
  for (;;) {
    const match = end < lines.length ? kItem.exec(lines[end].text) : null;
    if (match === null || kindOf(match[2]) !== kindOf(first[2]) || kRule.test(lines[end].text)) break;
    const spaces = match[3]?.length ?? 1;
    const width = match[1].length + match[2].length + (spaces > 4 ? 1 : spaces);
    const inner = [cut(lines[end], Math.min(width, lines[end].text.length))];
    ++end;
    while (end < lines.length) {
      const line = lines[end];
      const belongs = isBlank(line) || indent(line) >= width ||
                      (!isBlank(lines[end - 1]) && !startsBlock(line.text));
      if (!belongs) break;
      inner.push(cut(line, Math.min(width, indent(line))));
      ++end;
    }
    let blanks = 0;
    while (inner.length > 1 && isBlank(inner[inner.length - 1])) {
      inner.pop();
      ++blanks;
    }
    loose ||= inner.some(isBlank);
    const next = end < lines.length ? kItem.exec(lines[end].text) : null;
    if (next !== null && kindOf(next[2]) === kindOf(first[2])) loose ||= blanks > 0;
    else end -= blanks;
    const task = /^\[([ xX])\]\s+/.exec(inner[0].text);
    if (task !== null) inner[0] = cut(inner[0], task[0].length);
    items.push({ done: task === null ? null : task[1] !== ' ', blocks: parseBlocks(inner, depth + 1) });
    if (next === null) break;
  }
  const number = /\d/.test(first[2]) ? parseInt(first[2], 10) : null;
  return { kind: 'list', number, loose, items, length: end - i };
}

// The cells of a row, each with where it stands.
function cellsOf(line) {
  const cells = [];
  let begin = /^\s*\|?/.exec(line.text)[0].length;
  const close = (end) => {
    const text = line.text.slice(begin, end);
    const lead = text.length - text.trimStart().length;
    cells.push({ text: text.trim(), at: line.at + begin + lead });
  };
  for (let i = begin; i < line.text.length; ++i) {
    if (line.text[i] === '\\') {
      ++i;
    } else if (line.text[i] === '|') {
      close(i);
      begin = i + 1;
    }
  }
  if (line.text.slice(begin).trim() !== '') close(line.text.length);
  return cells;
}

function parseTable(lines, i) {
  const head = cellsOf(lines[i]);
  const rules = cellsOf(lines[i + 1]).map((cell) => cell.text);
  if (head.length !== rules.length) return null;
  const align = rules.map((rule) => (rule.endsWith(':') ? (rule.startsWith(':') ? 'center' : 'right') : ''));
  let end = i + 2;
  while (end < lines.length && !isBlank(lines[end]) && lines[end].text.includes('|')) ++end;
  const rows = lines.slice(i + 2, end).map((line) => cellsOf(line).slice(0, head.length));
  return { kind: 'table', head, align, rows, length: end - i };
}

function parseParagraph(lines, i) {
  let end = i + 1;
  while (end < lines.length && !isBlank(lines[end]) && !startsBlock(lines[end].text)) ++end;
  const content = lines.slice(i, end).map((line) => cut(line, indent(line)));
  return { kind: 'paragraph', content, length: end - i };
}

function makeBlock(block, emit) {
  switch (block.kind) {
    case 'heading':
      // The page has a heading of its own: those of answers begin a level below.
      return h(`h${Math.min(6, block.level + 1)}`, {}, inline(block.content, emit));
    case 'rule':
      return h('hr');
    case 'quote':
      return h('blockquote', {}, block.blocks.map((inner) => makeBlock(inner, emit)));
    case 'list':
      return makeList(block, emit);
    case 'table':
      return makeTable(block, emit);
    case 'code':
      return makeCode(block, emit);
    default:
      return h('p', {}, inline(block.content, emit));
  }
}

function makeList(list, emit) {
  const items = list.items.map((item) => {
    const content = item.blocks.map((block) => (block.kind === 'paragraph' && !list.loose
      ? inline(block.content, emit) : makeBlock(block, emit)));
    const box = item.done === null ? null
      : h('input', { type: 'checkbox', checked: item.done, disabled: true, 'aria-label': item.done ? 'done' : 'to do' });
    return h(item.done === null ? 'li' : 'li.task', {}, box, content.flat());
  });
  return list.number === null ? h('ul', {}, items) : h('ol', { start: list.number }, items);
}

function makeTable(table, emit) {
  const cell = (tag) => (content, i) =>
    h(tag, { style: { textAlign: table.align[i] } }, inline([content], emit));
  // It scrolls by itself where the column is narrower: keys must reach it.
  return h('div.wide', { tabIndex: 0, role: 'group', 'aria-label': 'Table' }, h('table', {},
    h('thead', {}, h('tr', {}, table.head.map(cell('th')))),
    h('tbody', {}, table.rows.map((row) => h('tr', {}, row.map(cell('td')))))));
}

function makeCode(block, emit) {
  const figure = h('figure.code', { dataset: { language: block.language } },
    h('figcaption', {}, h('span', {}, block.language || 'text'), h('button.quiet.small', { type: 'button' }, 'Copy')),
    h('pre', { tabIndex: 0, role: 'group', 'aria-label': `Code${block.language ? ` in ${block.language}` : ''}` }, h('code')));
  fillCode(figure, block, emit);
  return figure;
}

function fillCode(figure, block, emit) {
  const text = block.content.map((line) => line.text).join('\n');
  const begins = beginsOf(block.content);
  figure.querySelector('button').dataset.copy = text;
  setCode(figure.querySelector('code'), text, (part, at) => emitMapped(part, at, block.content, begins, emit));
}

function growCode(figure, block) {
  if (!figure?.matches('figure.code') || figure.dataset.language !== block.language) return false;
  fillCode(figure, block, plain);
  return true;
}

/**
 * @param {Array} items of which none for which `holds` comes before one for which it does not
 * @return {number} the place of the first one for which it holds, else their number
 */
export function firstOf(items, holds) {
  let from = 0;
  for (let to = items.length; from < to;) {
    const middle = (from + to) >> 1;
    if (holds(items[middle])) to = middle;
    else from = middle + 1;
  }
  return from;
}

// Where each line begins in the text that lines joined by newlines are.
function beginsOf(lines) {
  let begin = 0;
  return lines.map((line) => {
    const begins = begin;
    begin += line.text.length + 1;
    return begins;
  });
}

// A part of lines that were joined by newlines, at `at` in them, as nodes that know their place in the source.
// `begins`: beginsOf(lines).
function emitMapped(part, at, lines, begins, emit) {
  const nodes = [];
  for (let i = firstOf(begins, (begin) => begin > at) - 1; i < lines.length && begins[i] < at + part.length; ++i) {
    const from = Math.max(at, begins[i]);
    const to = Math.min(at + part.length, begins[i] + lines[i].text.length + 1);
    if (from < to) nodes.push(...emit(part.slice(from - at, to - at), lines[i].at + from - begins[i]));
  }
  return nodes;
}

// Text inside of blocks.

const kPunctuation = /[!-/:-@[-`{-~]/;
const kUrl = /(?:https?:\/\/|mailto:)[^\s<>"']+/y;

/** @return {Array<Node>} */
function inline(lines, emit) {
  const text = lines.map((line) => line.text).join('\n');
  const begins = beginsOf(lines);
  const emitPart = (from, to) => emitMapped(text.slice(from, to), from, lines, begins, emit);
  return new Inline(text, emitPart).run();
}

// Reads a text from left to right. `out` has nodes, and marks ({mark, ...}) that may still begin something.
class Inline {
  constructor(text, emitPart) {
    this.text = text;
    this.emitPart = emitPart;
    this.out = [];
    this.open = [];  // the marks in `out`
    this.at = 0;
    this.plain = 0;  // where the text begins that is not in `out` yet
    this.noClosing = new Set();  // lengths of runs of backticks that do not come again
  }

  run() {
    while (this.at < this.text.length) {
      if (!this.step()) ++this.at;
    }
    this.flush();
    return this.nodesFrom(0);
  }

  // The text before `at` is a text.
  flush() {
    if (this.at > this.plain) this.out.push(...this.emitPart(this.plain, this.at));
    this.plain = this.at;
  }

  skip(count) {
    this.at += count;
    this.plain = this.at;
  }

  add(node, count) {
    this.flush();
    this.out.push(node);
    this.skip(count);
    return true;
  }

  // Takes the nodes from `index` on out of `out`; marks among them were none.
  nodesFrom(index) {
    const nodes = this.out.splice(index).flatMap((entry) =>
      (entry instanceof Node ? [entry] : this.emitPart(entry.at, entry.at + entry.count)));
    this.open = this.open.filter((mark) => mark.index < index);
    return nodes;
  }

  // Whether something begins or ends here that is not a plain character.
  step() {
    const c = this.text[this.at];
    switch (c) {
      case '\\':
        return this.escape();
      case '`':
        return this.codeSpan();
      case '*':
      case '_':
      case '~':
        return this.emphasis(c);
      case '!':
        return this.text[this.at + 1] === '[' && this.pushMark('![', 2);
      case '[':
        return this.pushMark('[', 1);
      case ']':
        return this.link();
      case '<':
        return this.lineBreak() || this.address(c);
      case 'h':
      case 'm':
        return this.address(c);
      case '\n':
        return this.newline();
      default:
        return false;
    }
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === '\n') return this.add(h('br'), 2);
    // Formulas stand between these in what models write.
    if ('()[]'.includes(next)) {
      this.at += 2;
      return true;
    }
    if (next === undefined || !kPunctuation.test(next)) return false;
    this.flush();
    this.skip(1);  // the backslash; what follows it is a text
    ++this.at;
    return true;
  }

  // The one tag that models use where Markdown has no other way, as in the cells of tables.
  lineBreak() {
    const tag = /<br *\/?>/iy;
    tag.lastIndex = this.at;
    const found = tag.exec(this.text);
    return found !== null && this.add(h('br'), found[0].length);
  }

  codeSpan() {
    const run = /`+/y;
    run.lastIndex = this.at;
    const ticks = run.exec(this.text)[0].length;
    const begin = this.at + ticks;
    let end = this.noClosing.has(ticks) ? -1 : begin;
    while (end >= 0) {
      end = this.text.indexOf('`', end);
      if (end < 0) break;
      run.lastIndex = end;
      const length = run.exec(this.text)[0].length;
      if (length === ticks) break;
      end += length;
    }
    if (end < 0) {
      this.noClosing.add(ticks);
      this.at += ticks;
      return true;
    }
    const content = this.text.slice(begin, end);
    const padded = content.length > 2 && content.startsWith(' ') && content.endsWith(' ') && content.trim() !== '';
    const pad = padded ? 1 : 0;
    return this.add(h('code', {}, this.emitPart(begin + pad, end - pad)), end + ticks - this.at);
  }

  pushMark(mark, count, more = {}) {
    if (this.open.length >= kOpenMarks) return false;
    this.flush();
    const entry = { mark, at: this.at, count, index: this.out.length, ...more };
    this.out.push(entry);
    this.open.push(entry);
    this.skip(count);
    return true;
  }

  emphasis(c) {
    const run = c === '*' ? /\*+/y : c === '_' ? /_+/y : /~+/y;
    run.lastIndex = this.at;
    let count = run.exec(this.text)[0].length;
    const before = this.text[this.at - 1] ?? ' ';
    const after = this.text[this.at + count] ?? ' ';
    const word = (character) => !/\s/.test(character) && !kPunctuation.test(character);
    const left = !/\s/.test(after) && (word(after) || !word(before));
    const right = !/\s/.test(before) && (word(before) || !word(after));
    const opens = left && (c !== '_' || !right || !word(before));
    const closes = right && (c !== '_' || !left || !word(after));
    if (c === '~' && count !== 2) {
      this.at += count;
      return true;
    }
    while (closes && count > 0 && this.closeEmphasis(c, count)) count -= this.closed;
    if (count === 0) return true;
    if (opens && this.pushMark(c, count)) return true;
    this.at += count;
    return true;
  }

  // Ends the last emphasis that this mark can end.
  closeEmphasis(c, count) {
    let i = this.open.length - 1;
    while (i >= 0 && this.open[i].mark !== c) --i;
    if (i < 0) return false;
    const opener = this.open[i];
    this.closed = c === '~' || (opener.count >= 2 && count >= 2) ? 2 : 1;
    this.flush();
    const element = h(c === '~' ? 'del' : this.closed === 2 ? 'strong' : 'em', {}, this.nodesFrom(opener.index + 1));
    opener.count -= this.closed;
    if (opener.count === 0) {
      this.out.length = opener.index;
      this.open.pop();
    }
    this.out.push(element);
    this.skip(this.closed);
    return true;
  }

  link() {
    let i = this.open.length - 1;
    while (i >= 0 && this.open[i].mark !== '[' && this.open[i].mark !== '![') --i;
    if (i < 0) return false;
    const opener = this.open[i];
    const target = /\]\(\s*(?:<([^<>\n]{0,2000})>|([^\s()]{0,2000}(?:\([^\s()]{0,500}\)[^\s()]{0,500})?))(?:\s+(?:"[^"\n]{0,500}"|'[^'\n]{0,500}'))?\s*\)/y;
    target.lastIndex = this.at;
    const match = target.exec(this.text);
    if (match === null) {
      this.open.splice(i, 1);
      return false;
    }
    this.flush();
    const nodes = this.nodesFrom(opener.index + 1);
    this.out.length = opener.index;
    this.open = this.open.filter((mark) => mark !== opener);
    const label = opener.mark === '![' ? ['picture: ', ...nodes] : nodes;
    this.out.push(...linkTo(match[1] ?? match[2], label));
    this.skip(match[0].length);
    return true;
  }

  address(c) {
    const bracket = c === '<' ? 1 : 0;
    if (bracket === 0 && /[\w/]/.test(this.text[this.at - 1] ?? ' ')) return false;
    kUrl.lastIndex = this.at + bracket;
    let url = kUrl.exec(this.text)?.[0];
    if (url === undefined) return false;
    if (bracket === 0) {
      // What ends a sentence ends the address too, and so does a bracket around it.
      url = url.replace(/[.,:;!?*_~]+$/, '');
      while (url.endsWith(')') && url.split(')').length > url.split('(').length) url = url.slice(0, -1);
    } else if (this.text[this.at + 1 + url.length] !== '>') {
      return false;
    }
    const from = this.at + bracket;
    return this.add(linkTo(url, this.emitPart(from, from + url.length))[0], url.length + 2 * bracket);
  }

  newline() {
    const spaces = /(?: {2,})$/.exec(this.text.slice(Math.max(0, this.at - 80), this.at))?.[0].length ?? 0;
    if (spaces === 0) return false;
    return this.add(h('br'), 1);
  }
}

// What is shown of a link: a button, which shows the address before anything is opened.
function linkTo(address, label) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return label;
  }
  if (!['http:', 'https:', 'mailto:'].includes(url.protocol)) return label;
  return [h('button.link', { type: 'button', title: url.href, dataset: { link: url.href } }, label)];
}
