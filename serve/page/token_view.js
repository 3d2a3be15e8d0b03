// What is known of a token: its probability, what else might have come, and what can be done from there.

import { h } from './dom.js';
import { visible } from './chat_view.js';

const kMostTokens = 4096;  // of one request
const kAlternatives = 8;
const kHoverDelay = 120;   // milliseconds, so that a pointer on its way shows nothing

const percent = (logprob) => {
  const share = 100 * Math.exp(logprob);
  return share >= 99.95 ? '100 %' : share >= 0.1 ? `${share.toFixed(1)} %` : '< 0.1 %';
};

export class TokenView {
  /**
   * @param {HTMLElement} root whose [data-token] elements are tokens of the session that is shown
   * @param {HTMLElement} box where the details are shown
   * @param {Object} actions session(), probabilities(begin, end, top), forkAt(position), forkWith(position, token),
   *     rewindTo(position)
   */
  constructor(root, box, actions) {
    this.root = root;
    this.box = box;
    this.actions = actions;
    this.known = new Map();  // "session:version:position" -> {logprob, top}
    this.pinned = false;
    this.anchor = null;
    root.addEventListener('mouseover', (event) => this.hover(event.target.closest('[data-token]')));
    root.addEventListener('mouseleave', () => this.hover(null));
    root.addEventListener('click', (event) => this.click(event));
    root.addEventListener('keydown', (event) => this.move(event));
    box.addEventListener('mouseenter', () => clearTimeout(this.timer));
    box.addEventListener('mouseleave', () => this.hover(null));
    box.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        this.close(true);
      }
    });
    document.addEventListener('pointerdown', (event) => {
      if (this.pinned && !box.contains(event.target) && !event.target.closest('[data-token]')) this.close(false);
    });
    document.addEventListener('scroll', () => { if (!this.pinned && !this.box.hidden) this.close(false); }, true);
  }

  close(focus) {
    clearTimeout(this.timer);
    if (this.box.hidden) return;
    this.box.hidden = true;
    this.pinned = false;
    this.anchor?.classList.remove('chosen');
    if (focus) this.anchor?.focus();
    this.anchor = null;
  }

  hover(element) {
    if (this.pinned) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (element === null) this.close(false);
      else this.open(element, false);
    }, element === null ? 3 * kHoverDelay : kHoverDelay);
  }

  click(event) {
    const element = event.target.closest('[data-token]');
    // A click that ends a selection of text is not meant for the token.
    if (element === null || !(document.getSelection()?.isCollapsed ?? true)) return;
    clearTimeout(this.timer);
    this.open(element, true);
  }

  // Arrow keys go from token to token.
  move(event) {
    const element = event.target;
    if (!element.matches?.('button.token')) return;
    const all = [...element.parentElement.children];
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const index = event.key === 'Home' ? 0 : event.key === 'End' ? all.length - 1 : all.indexOf(element) + (step ?? 0);
    if (step === undefined && event.key !== 'Home' && event.key !== 'End') return;
    event.preventDefault();
    const next = all[Math.max(0, Math.min(all.length - 1, index))];
    element.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    this.open(next, false);
  }

  async open(element, pinned) {
    this.anchor?.classList.remove('chosen');
    this.anchor = element;
    this.pinned = pinned;
    element.classList.add('chosen');
    const session = this.actions.session();
    const position = Number(element.dataset.token);
    this.fill(session, position, this.find(session, position));
    this.place(element);
    if (pinned) this.box.querySelector('button')?.focus({ preventScroll: true });
    if (this.find(session, position) !== undefined || position === 0) return;
    let failed = null;
    try {
      await this.load(session, position);
    } catch (error) {
      failed = error.message;
    }
    if (this.anchor !== element) return;
    const inBox = this.box.contains(document.activeElement);
    this.fill(session, position, this.find(session, position), failed);
    this.place(element);
    if (inBox) this.box.querySelector('button')?.focus({ preventScroll: true });
  }

  key(session, position) {
    return `${session.name}:${session.version}:${position}`;
  }

  find(session, position) {
    return this.known.get(this.key(session, position));
  }

  // The probabilities of the prompt or the answer that has this token.
  async load(session, position) {
    const turn = session.turns.find((each) => position >= each.begin && position < each.end);
    const inAnswer = position >= turn.answer;
    let begin = Math.max(1, inAnswer ? turn.answer : turn.begin);
    let end = inAnswer ? turn.end : turn.answer;
    if (end - begin > kMostTokens) {
      begin = Math.max(begin, position - kMostTokens / 2);
      end = Math.min(end, begin + kMostTokens);
    }
    const reply = await this.actions.probabilities(begin, end, kAlternatives);
    reply.tokens.forEach((token, i) => this.known.set(this.key(session, begin + i), token));
    this.tint();
  }

  /** Shows in the colour of each token how likely it was, where that is known. */
  tint() {
    const session = this.actions.session();
    for (const element of this.root.querySelectorAll('button.token')) {
      const known = this.find(session, Number(element.dataset.token));
      if (known === undefined) continue;
      const share = Math.exp(known.logprob);
      element.dataset.likely = share > 0.8 ? '4' : share > 0.4 ? '3' : share > 0.1 ? '2' : share > 0.01 ? '1' : '0';
    }
  }

  fill(session, position, known, failed = null) {
    const button = (label, run, name = 'button.small') => h(name, {
      type: 'button',
      onclick: () => {
        this.close(false);
        run();
      },
    }, label);
    const parts = [
      h('div.row', {}, h('code.what', {}, visible(session.texts[position])),
        h('span.note', {}, `token ${session.tokens[position]} at ${position}`)),
    ];
    if (known !== undefined) {
      parts.push(h('p.chance', {}, h('strong', {}, percent(known.logprob)), ' likely here'));
      parts.push(h('ul.chances', { 'aria-label': 'What else might have come' }, known.top.map((other) => {
        const same = other.id === session.tokens[position];
        const bar = h('span.share', { style: { width: `${Math.max(1, 100 * Math.exp(other.logprob))}%` } });
        const label = [h('code', {}, visible(other.text)), h('span.note', {}, percent(other.logprob)), bar];
        return h('li', {}, same ? h('span.same', {}, label)
          : button(label, () => this.actions.forkWith(position, other), 'button.other'));
      })));
    } else {
      parts.push(h('p.note', {}, failed ?? (position === 0 ? 'The first token has no probability.' : '…')));
    }
    parts.push(h('div.row', {}, button('Fork after it', () => this.actions.forkAt(position + 1)),
      position + 1 < session.length ? button('Rewind to it', () => this.actions.rewindTo(position + 1)) : null));
    this.box.replaceChildren(...parts);
    this.box.hidden = false;
  }

  // Below the token where there is room, else above it.
  place(element) {
    const at = element.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.box;
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - width - 8));
    const below = at.bottom + 6;
    const fits = below + height < window.innerHeight - 8;
    this.box.style.left = `${left}px`;
    this.box.style.top = `${Math.max(8, fits ? below : at.top - height - 6)}px`;
  }
}
