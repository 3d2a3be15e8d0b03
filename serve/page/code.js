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

/**
 * Makes code the content of an element; `emit(text, at)` makes the nodes of a text that begins at `at` in it. Nodes of
 * an earlier call on the element stay where the code begins as it did.
 */
export function setCode(element, code, emit) {
  const before = element.parts ?? [];
  const parts = codeParts(code);
  const isSame = (i) => parts[i].kind === before[i].kind && parts[i].text === before[i].text;
  let same = 0;
  let nodes = 0;
  for (; same < parts.length && same < before.length && isSame(same); ++same) nodes += before[same].nodes;
  while (element.childNodes.length > nodes) element.lastChild.remove();
  parts.forEach((part, i) => {
    if (i < same) {
      part.nodes = before[i].nodes;
      return;
    }
    const made = emit(part.text, part.at);
    const children = part.kind === '' ? made : [h(`span.code-${part.kind}`, {}, ...made)];
    element.append(...children);
    part.nodes = children.length;
  });
  element.parts = parts;
}
