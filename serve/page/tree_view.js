// A conversation drawn as a tree. Its nodes are prompts and answers, cut where sessions part; each can be gone to, and
// forked or rewound to at any of its tokens.

import { messageText, rowsOf, textOf, treeOf } from './conversation.js';
import { h, svg } from './dom.js';

const kRow = 34;   // pixels
const kLane = 18;
const kDot = 5;

export class TreeView {
  /** @param {Object} actions open(name, turn), forkAt(name, position), rewindTo(name, position), remove(name) */
  constructor(root, actions) {
    this.root = root;
    this.actions = actions;
    this.chosen = null;  // {name, position}: stays chosen while the tree changes
  }

  show(sessions, active) {
    if (active === null || sessions.length === 0) {
      this.root.replaceChildren(h('p.note', {}, 'Nothing was said yet.'));
      return;
    }
    this.active = active;
    const rows = rowsOf(treeOf(sessions));
    const lanes = rows.reduce((most, row) => Math.max(most, row.lane + 1), 1);
    const list = h('div.tree', {
      role: 'tree',
      'aria-label': 'Branches of the conversation',
      style: { height: `${rows.length * kRow}px` },
      onkeydown: (event) => this.move(event),
    }, this.drawing(rows, lanes), rows.map((row, i) => this.item(row, i, rows, lanes)));
    const focused = list.querySelector('[aria-current="true"]') ?? list.querySelector('[role=treeitem]');
    if (focused !== null) focused.tabIndex = 0;
    const had = this.root.contains(document.activeElement);
    this.detail = h('div.detail');
    this.root.replaceChildren(list, this.detail);
    const row = rows.find(({ node }) => this.isChosen(node));
    if (row !== undefined) this.choose(row.node, this.chosen.position);
    if (had) focused?.focus();
  }

  isChosen(node) {
    return this.chosen !== null && node.sessions.some((session) => session.name === this.chosen.name) &&
        this.chosen.position > node.from && this.chosen.position <= node.to;
  }

  drawing(rows, lanes) {
    const x = (lane) => 10 + lane * kLane;
    const y = (index) => index * kRow + kRow / 2;
    const picture = svg('svg', { width: x(lanes), height: rows.length * kRow, 'aria-hidden': 'true' });
    rows.forEach((row, i) => {
      if (row.parent < 0) return;
      const from = [x(rows[row.parent].lane), y(row.parent)];
      const to = [x(row.lane), y(i)];
      const turn = Math.min(from[1] + kRow, to[1]);
      picture.append(svg('path', {
        d: from[0] === to[0] ? `M${from}V${to[1]}` : `M${from}C${from[0]},${turn} ${to[0]},${from[1]} ${to[0]},${turn}V${to[1]}`,
        class: row.node.sessions.includes(this.active) ? 'line active' : 'line',
      }));
    });
    rows.forEach((row, i) => {
      const names = ['dot', row.node.role];
      if (row.node.sessions.includes(this.active)) names.push('active');
      picture.append(svg('circle', { cx: x(row.lane), cy: y(i), r: kDot, class: names.join(' ') }));
    });
    return picture;
  }

  item(row, i, rows, lanes) {
    const { node } = row;
    const level = (index) => (index < 0 ? 0 : 1 + level(rows[index].parent));
    const current = node.sessions.includes(this.active) &&
        !node.children.some((child) => child.sessions.includes(this.active));
    return h('button.node', {
      type: 'button',
      role: 'treeitem',
      tabIndex: -1,
      'aria-level': level(i),
      'aria-selected': String(this.isChosen(node)),
      'aria-current': String(current),
      style: { top: `${i * kRow}px`, paddingLeft: `${14 + lanes * kLane}px` },
      onclick: () => {
        this.choose(node, node.to);
        this.actions.open(this.nameOf(node), node.turn);
      },
    }, h('span.who', {}, node.role === 'prompt' ? 'You' : 'Model'), ` ${label(node)}`);
  }

  // The shown session where it has the node, else the newest that has it.
  nameOf(node) {
    const session = node.sessions.includes(this.active) ? this.active
      : node.sessions.reduce((newest, each) => (each.updated > newest.updated ? each : newest));
    return session.name;
  }

  move(event) {
    const items = [...this.root.querySelectorAll('[role=treeitem]')];
    const index = items.indexOf(document.activeElement);
    const next = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: items.length - 1 }[event.key];
    if (next === undefined || items[next] === undefined) return;
    event.preventDefault();
    items.forEach((item) => { item.tabIndex = -1; });
    items[next].tabIndex = 0;
    items[next].focus();
  }

  // Shows what can be done at a token of the node.
  choose(node, position) {
    const name = this.nameOf(node);
    this.chosen = { name, position };
    const session = node.owner;
    const before = h('span', {});
    const after = h('span.after', {});
    const note = h('span.note', {});
    const forkButton = h('button.small', { type: 'button', onclick: () => this.actions.forkAt(name, this.chosen.position) }, 'Fork here');
    const rewind = h('button.small', { type: 'button', onclick: () => this.actions.rewindTo(name, this.chosen.position) }, 'Rewind here');
    const excerpt = h('p.excerpt', { tabIndex: 0, role: 'group', 'aria-label': 'What is kept, and what follows' }, before,
      h('span.caret', {}), after);
    const update = (to) => {
      this.chosen.position = to;
      before.textContent = textOf(session, node.from, to).slice(-200);
      after.textContent = textOf(session, to, node.to).slice(0, 60);
      excerpt.scrollTop = excerpt.scrollHeight;
      note.textContent = `${to - node.from} of ${node.to - node.from} tokens kept; position ${to}`;
    };
    const slider = h('input', {
      type: 'range',
      min: node.from + 1,
      max: node.to,
      'aria-label': 'Token of this node',
      oninput: () => update(Number(slider.value)),
    });
    slider.value = position;
    this.detail.replaceChildren(excerpt, slider, note, h('div.row', {}, forkButton, rewind,
      h('button.quiet.small', { type: 'button', onclick: () => this.actions.remove(name) }, 'Delete branch')));
    update(Number(slider.value));
  }
}

// What a node begins with.
function label(node) {
  const { owner } = node;
  const turn = owner.turns[node.turn];
  let text = '';
  // What several prompts begin with is none of their messages.
  if (node.role === 'prompt' && node.to === turn.answer && turn.kind === 'answer') {
    text = turn.messages.map(messageText).join(' ');
  }
  if (text === '') text = textOf(owner, node.from, Math.min(node.to, node.from + 24));
  return text.replace(/\s+/g, ' ').trim().slice(0, 80) || '…';
}
