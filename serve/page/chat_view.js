// The messages and answers of the session that is shown.

import { alignTokens, entriesOf, messageText, textOf, variantsOf } from './conversation.js';
import { h, sends } from './dom.js';
import { firstOf, markdownBlocks } from './markdown.js';

// Tokens as they can be read: what is not seen gets a sign.
export function visible(text) {
  if (text === '') return '∅';
  return text.replaceAll('\n', '⏎\n').replaceAll('\t', '⇥').replace(/^ +| +$/g, (spaces) => '·'.repeat(spaces.length));
}

export class ChatView {
  /**
   * @param {HTMLElement} root what the messages are shown in
   * @param {Object} actions edit(turn, text), regenerate(turn), proceed(), open(name)
   */
  constructor(root, actions) {
    this.root = root;
    this.actions = actions;
    this.asTokens = new Set();  // entries that are shown as tokens, in all branches: "turn:kind"
    this.answer = null;         // the answer that is computed
    this.live = null;           // its element
    this.editing = null;        // the message that is edited: {name, turn, text}
  }

  /** Shows a session with an answer on its way (null: none). */
  show(sessions, session, live) {
    this.sessions = sessions;
    this.session = session;
    this.answer = live;
    const entries = session === null ? [] : entriesOf(session);
    const elements = entries.map((entry, i) => this.makeEntry(entry, entries, i, live !== null));
    this.live = null;
    if (live !== null) {
      // What is gone on with is shown with what it becomes.
      if (live.continues && elements.length > 0) elements.pop();
      elements.push(...live.messages.map((message) => h('article.entry.user', { 'aria-label': 'You' },
        h('div.bubble', {}, messageText(message)))));
      this.live = h('article.entry.assistant', { 'aria-label': 'Answer', 'aria-busy': 'true' });
      elements.push(this.live);
    }
    const before = document.activeElement;
    const writes = before?.closest('.edit') !== null && this.root.contains(before) ? before : null;
    this.root.replaceChildren(...elements);
    if (writes !== null) {
      const area = this.root.querySelector('.edit textarea');
      area?.focus();
      area?.setSelectionRange(writes.selectionStart ?? 0, writes.selectionEnd ?? 0);
    }
    if (live !== null) this.showLive(live);
  }

  // Shows the same, otherwise.
  showAgain() {
    this.show(this.sessions, this.session, this.answer);
  }

  /** Shows more of the answer that is computed. */
  showLive(live) {
    if (this.live === null) return;
    const waits = live.text === '' && live.reasoning === '' && live.calls.length === 0;
    this.fillAnswer(this.live, live, null, true);
    if (waits) this.live.append(h('p.waits', {}, live.status));
  }

  makeEntry(entry, entries, i, busy) {
    if (entry.kind === 'answer') return this.makeAnswer(entry, busy);
    if (entry.kind === 'text') return this.makeText(entry, busy);
    return this.makeMessage(entry, entries[i + 1], busy);
  }

  makeMessage(entry, next, busy) {
    const { message, turn } = entry;
    const text = messageText(message);
    if (message.role !== 'user') {
      const name = message.role === 'tool' ? 'Result of a tool' : `${message.role[0].toUpperCase()}${message.role.slice(1)} message`;
      return h('article.entry.aside', { 'aria-label': name },
        h('details', {}, h('summary', {}, name), h('div.plain', {}, text)));
    }
    const article = h('article.entry.user', { 'aria-label': 'You' }, h('div.bubble', {}, text));
    if (turn < 0) return article;
    const { begin, answer, intact } = this.session.turns[turn];
    const tokens = intact ? this.tokensOf(`${turn}:prompt`, begin, answer) : null;
    const whole = this.session.turns[turn].messages.length === 1 && next?.kind === 'answer';
    const edit = whole && !busy ? h('button.quiet.small', {
      type: 'button',
      onclick: () => this.editMessage(article, turn, text, true),
    }, 'Edit') : null;
    article.append(this.bar([edit, tokens?.toggle, whole ? this.variants(turn, 'prompt', busy) : null]));
    if (tokens?.list) article.append(tokens.list);
    if (edit !== null && this.editing?.name === this.session.name && this.editing.turn === turn) {
      this.editMessage(article, turn, this.editing.text, false);
    }
    return article;
  }

  editMessage(article, turn, text, focus) {
    const end = () => {
      this.editing = null;
      this.showAgain();
    };
    // Kept where the view is made again meanwhile.
    this.editing = { name: this.session.name, turn, text };
    const area = h('textarea', {
      value: text,
      rows: Math.min(12, text.split('\n').length + 1),
      'aria-label': 'Edit your message',
      oninput: () => { this.editing.text = area.value; },
    });
    const form = h('form.edit', {
      onsubmit: (event) => {
        event.preventDefault();
        if (area.value.trim() !== '') this.actions.edit(turn, area.value);
      },
      onkeydown: (event) => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          end();
        } else if (sends(event)) {
          event.preventDefault();
          form.requestSubmit();
        }
      },
    }, area, h('div.row', {}, h('button.primary', {}, 'Send as a new branch'),
      h('button', { type: 'button', onclick: end }, 'Cancel')));
    article.replaceChildren(form);
    if (focus) area.focus();
  }

  makeAnswer(entry, busy) {
    const { turn, last, message } = entry;
    const article = h('article.entry.assistant', { 'aria-label': 'Answer', dataset: { turn } });
    const intact = this.session.turns.slice(turn, last + 1).every((each) => each.intact);
    const tokens = intact ? this.tokensOf(`${turn}:answer`, entry.from, entry.to) : null;
    if (tokens?.list) {
      article.append(tokens.list);
    } else {
      const answer = { text: message.content, reasoning: message.reasoning_content ?? '', calls: message.tool_calls ?? [] };
      this.fillAnswer(article, answer, intact ? entry : null, false);
    }
    const end = this.session.turns[last];
    const isLast = last === this.session.turns.length - 1;
    const unfinished = isLast && (end.finish_reason === 'length' || end.finish_reason === 'cancelled');
    const button = (label, onclick) => h('button.quiet.small', { type: 'button', onclick }, label);
    article.append(this.bar([
      h('button.quiet.small', { type: 'button', dataset: { copy: message.content } }, 'Copy'),
      busy ? null : button('Regenerate', () => this.actions.regenerate(turn)),
      unfinished && !busy ? button('Continue', () => this.actions.proceed()) : null,
      tokens?.toggle,
      this.variants(turn, 'answer', busy),
      h('span.note', {}, this.noteOn(end, entry)),
    ]));
    return article;
  }

  noteOn(turn, entry) {
    const count = `${entry.to - entry.from} tokens`;
    if (turn.finish_reason === 'length') return `${count}, cut at its limit`;
    if (turn.finish_reason === 'cancelled') return `${count}, stopped`;
    return count;
  }

  // A turn without messages: what was given, then what the model wrote.
  makeText(entry, busy) {
    const { turn, from, answer, to } = entry;
    const intact = this.session.turns[turn].intact;
    const tokens = intact ? this.tokensOf(`${turn}:text`, from, to) : null;
    const article = h('article.entry.assistant', { 'aria-label': 'Text', dataset: { turn } });
    if (tokens?.list) article.append(tokens.list);
    else article.append(h('div.plain', {}, h('span.given', {}, textOf(this.session, from, answer)), textOf(this.session, answer, to)));
    const isLast = turn === this.session.turns.length - 1;
    article.append(this.bar([
      isLast && !busy ? h('button.quiet.small', { type: 'button', onclick: () => this.actions.proceed() }, 'Continue') : null,
      tokens?.toggle,
    ]));
    return article;
  }

  // The button that shows an entry as tokens, and those where they are shown.
  tokensOf(key, from, to) {
    if (from >= to) return null;
    const shown = this.asTokens.has(key);
    const toggle = h('button.quiet.small', {
      type: 'button',
      'aria-pressed': String(shown),
      dataset: { tokens: key },
      onclick: () => {
        if (shown) this.asTokens.delete(key);
        else this.asTokens.add(key);
        this.showAgain();
        this.root.querySelector(`[data-tokens="${key}"]`)?.focus();
      },
    }, 'Tokens');
    if (!shown) return { toggle };
    const buttons = [];
    for (let token = from; token < to; ++token) {
      buttons.push(h('button.token', { type: 'button', tabIndex: token === from ? 0 : -1, dataset: { token } },
        visible(this.session.texts[token])));
    }
    return { toggle, list: h('div.tokens', { role: 'group', 'aria-label': 'Tokens: arrow keys move, Enter shows more' }, buttons) };
  }

  variants(turn, part, busy) {
    const { names, current } = variantsOf(this.sessions, this.session, turn, part);
    if (names.length < 2) return null;
    const go = (step, label, sign) => h('button.quiet.small', {
      type: 'button',
      'aria-label': label,
      disabled: busy || names[current + step] === undefined,
      onclick: () => this.actions.open(names[current + step]),
    }, sign);
    return h('span.variants', { role: 'group', 'aria-label': 'Branches' }, go(-1, 'Previous branch', '‹'),
      h('span', {}, `${current + 1}/${names.length}`), go(1, 'Next branch', '›'));
  }

  bar(items) {
    return h('div.bar', {}, items);
  }

  // `entry`: whose tokens the text is of; null: unknown.
  fillAnswer(article, answer, entry, live) {
    // The thoughts come first, and a marker ends them: words that stand in both belong to different tokens.
    const thoughts = entry === null ? [] : alignTokens(this.session, entry.from, entry.to, answer.reasoning);
    const behind = thoughts.length === 0 ? entry?.from : thoughts.at(-1).token + 1;
    const emitterOf = (parts) => (entry === null ? undefined : emitter(parts));
    this.fillThoughts(article, answer.reasoning, emitterOf(thoughts), live && answer.text === '');
    let prose = article.querySelector(':scope > .prose');
    if (prose === null) {
      prose = h('div.prose');
      article.append(prose);
    }
    fillProse(prose, answer.text, emitterOf(entry === null ? [] : alignTokens(this.session, behind, entry.to, answer.text)));
    article.querySelectorAll(':scope > .call, :scope > .waits').forEach((element) => element.remove());
    for (const call of answer.calls.filter((each) => each !== undefined)) {
      const { name, arguments: text } = call.function ?? call;
      article.append(h('div.call', {}, h('span', {}, 'Call of '), h('code', {}, `${name}(${text})`)));
    }
  }

  fillThoughts(article, text, emit, open) {
    let details = article.querySelector(':scope > .thoughts');
    if (text === '') {
      details?.remove();
      return;
    }
    if (details === null) {
      details = h('details.thoughts', { open }, h('summary', {}, 'Thoughts'), h('div.prose'));
      article.prepend(details);
    }
    fillProse(details.lastElementChild, text, emit);
  }
}

// Makes the nodes of a text whose `parts` (alignTokens) know their tokens.
function emitter(parts) {
  return (text, at) => {
    const nodes = [];
    let i = firstOf(parts, (part) => part.to > at);
    let done = 0;
    while (done < text.length) {
      const part = parts[i];
      const begins = part === undefined ? Infinity : part.from - at;
      if (begins > done) {
        const end = Math.min(text.length, begins);
        nodes.push(document.createTextNode(text.slice(done, end)));
        done = end;
        continue;
      }
      const end = Math.min(text.length, part.to - at);
      nodes.push(h('span.t', { dataset: { token: part.token } }, text.slice(done, end)));
      done = end;
      ++i;
    }
    return nodes;
  };
}

// Blocks whose source has not changed keep their elements, so that an answer costs what is new of it.
function fillProse(prose, text, emit) {
  const blocks = markdownBlocks(text);
  const kept = prose.blocks ?? [];
  let same = 0;
  while (same < kept.length && same < blocks.length && kept[same] === blocks[same].source) ++same;
  // A block of code that grows stays the same element: it can be scrolled, selected and copied from meanwhile.
  if (emit === undefined && same < blocks.length && blocks[same].grow(prose.children[same])) ++same;
  while (prose.children.length > same) prose.lastElementChild.remove();
  for (const block of blocks.slice(same)) prose.append(block.make(emit));
  prose.blocks = blocks.map((block) => block.source);
}
