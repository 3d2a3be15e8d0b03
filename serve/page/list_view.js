// The list of conversations: each with the title of its newest branch, the one that changed last first.

import { rootOf } from './conversation.js';
import { h } from './dom.js';

export class ListView {
  /** @param {Object} actions open(name of a session), remove(name of the root of its branches) */
  constructor(root, actions) {
    this.root = root;
    this.actions = actions;
  }

  /** @param {?string} shown the root of the conversation that is shown. */
  show(summaries, shown) {
    const byRoot = new Map();
    for (const summary of summaries) {
      const root = rootOf(summary);
      const known = byRoot.get(root);
      const count = (known?.count ?? 0) + 1;
      const newest = known === undefined || summary.updated >= known.summary.updated ? summary : known.summary;
      byRoot.set(root, { root, summary: newest, count });
    }
    const items = [...byRoot.values()].sort((a, b) => b.summary.updated - a.summary.updated);
    this.root.replaceChildren(...items.map((item) => this.itemOf(item, shown)));
  }

  itemOf({ root, summary, count }, shown) {
    const nameless = summary.unreadable ? 'Unreadable conversation' : 'Empty conversation';
    return h('li', {},
      h('button.conversation', {
        type: 'button',
        'aria-current': root === shown ? 'page' : null,
        onclick: () => this.actions.open(summary.name),
      }, h('span', {}, summary.title || nameless), count > 1 ? h('span.note', {}, `${count} branches`) : null),
      h('button.quiet.small', {
        type: 'button',
        'aria-label': `Delete ${summary.title || 'the conversation'}`,
        onclick: () => this.actions.remove(root),
      }, '×'));
  }
}
