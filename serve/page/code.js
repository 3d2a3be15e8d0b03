// Colours for code of any language: comments, strings, numbers and the words that most languages share.

import { h } from './dom.js';

const kWords = new Set(`abstract and as async await auto bool break case catch char class const constexpr continue
def default del delete do double elif else end enum except export extends extern false finally float fn for from
func function goto if impl import in include inline instanceof int interface is lambda let long match mod module
mut namespace new nil none not null operator or package pass private protected pub public raise return self short
signed sizeof static str string struct super switch template then this throw trait true try type typedef typename
union unsigned use using var virtual void volatile where while with yield`.split(/\s+/));

const kParts = new RegExp([
  String.raw`(?<comment>\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)|(?<![\w$])#(?![\da-fA-F]{3,8}\b)[^\n]*|--\s[^\n]*)`,
  String.raw`(?<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'|` + '`(?:\\\\.|[^`\\\\])*`)',
  String.raw`(?<number>\b\d[\w.]*)`,
  String.raw`(?<word>[A-Za-z_$][\w$]*)`,
].join('|'), 'g');

/**
 * The parts of a piece of code.
 * @return {Array<{text: string, at: number, kind: string}>} kind: "comment", "string", "number",
 *     "keyword" or "".
 */
export function codeParts(code) {
  const parts = [];
  let end = 0;
  const add = (to, kind) => {
    if (to > end) parts.push({ text: code.slice(end, to), at: end, kind });
    end = to;
  };
  for (const match of code.matchAll(kParts)) {
    let kind = ['comment', 'string', 'number'].find((name) => match.groups[name] !== undefined) ?? '';
    if (kWords.has(match[0])) kind = 'keyword';
    if (kind === '') continue;
    add(match.index, '');
    add(match.index + match[0].length, kind);
  }
  add(code.length, '');
  return parts;
}

/** Appends code to an element; `emit(text, at)` makes the nodes of a text that begins at `at` in it. */
export function appendCode(parent, code, emit) {
  for (const part of codeParts(code)) {
    const nodes = emit(part.text, part.at);
    if (part.kind === '') parent.append(...nodes);
    else parent.append(h(`span.code-${part.kind}`, {}, ...nodes));
  }
}
