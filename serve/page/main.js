// The page: which conversation is shown, and what is done to it. The server keeps conversations as sessions
// (/v1/sessions); the page keeps nothing but settings, and a request that has had no reply yet.

import { ChatView } from './chat_view.js';
import { copy } from './clipboard.js';
import { rootOf } from './conversation.js';
import { byId, confirmed, sends, store, stored, toast } from './dom.js';
import { Figures } from './figures.js';
import { draftOf, pendingOf, setDraft, setPending } from './kept.js';
import { ListView } from './list_view.js';
import { LiveTurn } from './live_turn.js';
import { ServerError, ask, follow, isPassing } from './server.js';
import { applyTheme, setting, showSettings, turnFields } from './settings.js';
import { TokenView } from './token_view.js';
import { TreeView } from './tree_view.js';

const kRetry = 1000;  // milliseconds between looks for a server that is gone

let summaries = [];         // of all sessions of this client
let branches = new Map();   // sessions of the conversation that is shown, by name
let active = location.hash.slice(1) || null;  // the name of the one that is shown; null: a new conversation
let live = null;            // the answer on its way in it
const channel = new BroadcastChannel('inlay');  // to other tabs

const messages = byId('messages');
const input = byId('input');
const actions = { edit, regenerate, proceed, open: (name) => open(name) };
const chat = new ChatView(messages, actions);
const tree = new TreeView(byId('tree'), {
  open: async (name, turn) => {
    await open(name);
    messages.querySelector(`[data-turn="${turn}"]`)?.scrollIntoView({ block: 'nearest' });
  },
  forkAt,
  rewindTo,
  remove: removeBranch,
});
const tokens = new TokenView(messages, byId('token'), {
  session: () => branches.get(active),
  probabilities: (begin, end, top) => ask('POST', `${pathOf(active)}/probabilities`, { begin, end, top }),
  forkAt: (position) => forkAt(active, position),
  forkWith,
  rewindTo: (position) => rewindTo(active, position),
});
const list = new ListView(byId('list'), {
  open: (name) => {
    open(name);
    showSide(false);
  },
  remove: removeConversation,
});
const figures = new Figures(byId('figures'));

const pathOf = (name) => `/v1/sessions/${name}`;
const current = () => branches.get(active) ?? null;

// What is shown.

// Changes what is shown; who has read to the end still sees the end then.
function keepEnd(change) {
  const atEnd = messages.scrollHeight - messages.scrollTop - messages.clientHeight < 80;
  change();
  if (atEnd) messages.scrollTop = messages.scrollHeight;
}

function render() {
  const session = current();
  tokens.close(false);
  keepEnd(() => chat.show([...branches.values()], session, live));
  tokens.tint();
  tree.show([...branches.values()], session);
  byId('welcome').hidden = session !== null || live !== null;
  byId('title').textContent = session?.title || 'New conversation';
  document.title = session?.title ? `${session.title} – Inlay` : 'Inlay';
  showComposer();
  showList();
}

function showComposer() {
  byId('send').hidden = live !== null;
  byId('stop').hidden = live === null;
  byId('send').disabled = input.value.trim() === '';
  input.style.height = 'auto';
  input.style.height = `${Math.min(input.scrollHeight + 2, window.innerHeight * 0.4)}px`;
}

function showList() {
  const shown = active === null ? null : rootOf(current() ?? { name: active });
  list.show(summaries, shown);
}

// More of an answer is shown once for each frame, however often it comes.
let frame = 0;
function renderLive() {
  if (frame !== 0) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    if (live !== null) keepEnd(() => chat.showLive(live));
  });
}

function showSide(on) {
  document.body.classList.toggle('side-open', on);
  byId('menu').setAttribute('aria-expanded', String(on));
}

function showPanel(name) {
  const shown = document.body.dataset.panel === name ? '' : name;
  document.body.dataset.panel = shown;
  store('panel', shown);
  keepEnd(() => {
    for (const panel of ['tree', 'figures']) {
      byId(`${panel}-panel`).hidden = panel !== shown;
      byId(`${panel}-button`).setAttribute('aria-pressed', String(panel === shown));
    }
  });
  figures.watch(shown === 'figures');
}

// Errors that nothing else deals with.
function report(error) {
  if (error instanceof ServerError && error.status === 401) {
    return new Promise((resolve) => {
      showSettings({ why: `${error.message[0].toUpperCase()}${error.message.slice(1)}.`, done: () => resolve(start()) });
    });
  }
  toast(error.message);
  if (!(error instanceof ServerError)) throw error;
  return undefined;
}

async function attempt(run) {
  try {
    return await run();
  } catch (error) {
    await report(error);
    return undefined;
  }
}

// Conversations.

// Of loads that overlap, one that began earlier and ends later changes nothing: it would bring back what was.
class Newest {
  #begun = 0;
  #taken = 0;

  async take(load, set) {
    const mine = ++this.#begun;
    const loaded = await load();
    if (mine < this.#taken) return;
    this.#taken = mine;
    set(loaded);
  }
}
const newestList = new Newest();
const newestConversation = new Newest();

function loadList() {
  return newestList.take(() => ask('GET', '/v1/sessions'), ({ data }) => {
    summaries = data;
  });
}

// The conversation that a session belongs to, with all its branches; nothing of a new one (null).
function loadConversation(name) {
  return newestConversation.take(() => (name === null ? [] : askConversation(name)), (all) => {
    branches = new Map(all.map((each) => [each.name, each]));
  });
}

async function askConversation(name) {
  const session = await ask('GET', `${pathOf(name)}?tokens=1`);
  const others = summaries.filter((summary) => summary.name !== name && rootOf(summary) === rootOf(session));
  const loaded = await Promise.all(others.map(async (summary) => {
    const known = branches.get(summary.name);
    if (known !== undefined && known.version === summary.version) return known;
    return ask('GET', `${pathOf(summary.name)}?tokens=1`).catch(() => null);
  }));
  return [session, ...loaded.filter((each) => each !== null)].sort((a, b) => a.created - b.created || (a.name < b.name ? -1 : 1));
}

// Makes `text` what is written in the input.
function write(text) {
  input.value = text;
  setDraft(active, text);
  showComposer();
}

// Makes `name` what is shown, and the input what was last written there.
function activate(name) {
  setDraft(active, input.value);
  live?.leave.abort();
  live = null;
  active = name;
  history.replaceState(null, '', name === null ? '#' : `#${name}`);
  write(draftOf(name));
}

async function open(name) {
  const left = current() === null ? null : active;
  activate(name);
  if (name === null) {
    await loadConversation(null);
    render();
    input.focus();
    return;
  }
  await attempt(async () => {
    try {
      if (!await loadActive() || active !== name) return;
    } catch (error) {
      if (active === name) stay(left);
      throw error;
    }
    render();
    messages.scrollTop = messages.scrollHeight;
    await resume(name);
  });
}

// What is on the screen stays there, as another conversation could not be opened. An address that nothing was shown
// of yet is kept, to be tried again when the page is loaded anew.
function stay(name) {
  if (name === null) {
    active = null;
    return;
  }
  activate(name);
  if (current() !== null) attempt(() => resume(name));
}

// Loads what is shown. False where the server no longer has it.
async function loadActive() {
  try {
    await loadConversation(active);
    return true;
  } catch (error) {
    if (error.status !== 404) throw error;
  }
  const [gone, text] = [active, input.value];
  await open(null);
  setDraft(gone, '');
  if (text.trim() !== '') giveBack(null, text);
  toast(`The server no longer has this conversation.${text.trim() === '' ? '' : ' What you wrote is below.'}`);
  return false;
}

// Looks whether an answer is on its way, or whether a request of this tab has had no reply.
async function resume(name) {
  const body = pendingOf(name);
  if (body !== null || current().running) await runTurn(name, body, true);
}

async function refresh() {
  await loadList();
  if (active !== null && !await loadActive()) return;
  render();
}

async function removeConversation(root) {
  const names = summaries.filter((summary) => rootOf(summary) === root).map((summary) => summary.name);
  const many = names.length > 1 ? ` with its ${names.length} branches` : '';
  if (!await confirmed(`Delete this conversation${many}?`, 'Delete')) return;
  await attempt(async () => {
    for (const name of names) await ask('DELETE', pathOf(name));
    if (names.includes(active)) await open(null);
  });
  await changed();
}

async function removeBranch(name) {
  if (!await confirmed('Delete this branch?', 'Delete')) return;
  await attempt(async () => {
    await ask('DELETE', pathOf(name));
    branches.delete(name);
    if (name === active) await open([...branches.keys()].at(-1) ?? null);
  });
  await changed();
}

// Does one thing at a time: a second click while the first one's request is on its way does nothing. What is shown
// already must be no part of `run`, or clicks on it would be lost.
let acting = false;
async function alone(run) {
  if (acting || live !== null) return;
  acting = true;
  try {
    await attempt(run);
  } finally {
    acting = false;
  }
}

// Tells other tabs, and shows what is new here.
async function changed() {
  channel.postMessage({ changed: active });
  await attempt(refresh);
}

// Turns.

// Computes a turn with the settings. `given`: the text that the answer goes on with, if it does.
function newTurn(name, body, given = '') {
  const messages = body.prompt === undefined && body.tokens === undefined;
  return runTurn(name, { ...turnFields(messages), ...body }, false, given);
}

// Computes a turn of the session that is shown (`body`: what it asks for), or follows the one that is computed
// already (null). With `quiet` nothing is shown until there is one.
async function runTurn(name, body, quiet = false, given = '') {
  const request = body === null ? null : {
    stream: true, background: true, idempotency_key: crypto.randomUUID?.() ?? String(Math.random()), ...body,
  };
  const turn = new LiveTurn(name, request);
  const session = () => (active === name ? current() : null);
  if (request !== null) setPending(name, request);
  turn.begin(session(), given);
  const show = () => {
    if (live === turn || active !== name) return;
    live = turn;
    render();
  };
  if (!quiet) show();
  let following = quiet;
  for (;;) {
    try {
      const onEvent = (event) => {
        if (request !== null && !turn.told) channel.postMessage({ running: name });
        turn.told = true;
        if (active !== name) return;
        show();
        turn.take(event, current());
        if (event.type === 'running') render();
        renderLive();
      };
      if (following) await follow('GET', `${pathOf(name)}/running`, undefined, onEvent, turn.leave.signal);
      else if (request !== null) await follow('POST', `${pathOf(name)}/turns`, request, onEvent, turn.leave.signal);
      if (turn.error?.type === 'overloaded_error') throw new ServerError(503, turn.error.message);
      if (turn.error === undefined && turn.done !== true) throw new ServerError(0, 'The connection broke.');
      break;
    } catch (error) {
      if (error.name === 'AbortError') return;
      const ended = following && error.status === 404;
      if (ended && request === null) break;
      if (ended) {
        following = false;  // it was never begun, or is stored: the key tells which
        continue;
      }
      if (!isPassing(error)) {
        turn.error = error;
        break;
      }
      if (quiet && live !== turn && request === null) throw error;
      turn.status = 'The server does not answer; trying again…';
      renderLive();
      await new Promise((resolve) => {
        setTimeout(resolve, kRetry);
        turn.leave.signal.addEventListener('abort', resolve, { once: true });
      });
      if (turn.leave.signal.aborted) return;
      following = true;
      turn.begin(session(), given);
    }
  }
  await finish(turn, request);
}

// The end of a turn: it is stored, or it failed.
async function finish(turn, request) {
  const shown = live === turn;
  if (shown) live = null;
  if (request !== null) setPending(turn.name, null);
  if (request === null && !shown) return void await attempt(refresh);
  if (turn.error !== undefined && request !== null) giveBack(turn.name, turn.written);
  if (turn.error === undefined && shown) announce(turn.text);
  showComposer();
  await changed();
  if (turn.error?.status === 404 && active !== turn.name) return;  // the conversation is gone, which has been said
  if (turn.error instanceof ServerError) await report(turn.error);
  else if (turn.error !== undefined) toast(turn.error.message);
}

// A message that has become no turn goes back to where it was written, in front of what was written since.
function giveBack(name, text) {
  if (text === '') return;
  const before = (since) => (since === '' ? text : `${text}\n${since}`);
  if (name === active) write(before(input.value));
  else setDraft(name, before(draftOf(name)));
}

async function send() {
  if (input.value.trim() === '') return;
  await alone(async () => {
    const text = input.value;
    if (active === null) {
      const made = await ask('POST', '/v1/sessions', setting('system') === '' ? {} : { system: setting('system') });
      if (active !== null) return;  // another one was opened: the message waits where it was written
      setDraft(null, '');
      active = made.name;
      history.replaceState(null, '', `#${active}`);
      await loadConversation(active);
    }
    const session = current();
    const raw = session.turns.at(-1)?.kind === 'raw';
    write('');
    await newTurn(session.name, { parent: session.version, ...(raw ? { prompt: text } : { content: text }) }, text);
  });
}

async function stop() {
  const turn = live;
  if (turn === null) return;
  await attempt(() => ask('POST', `${pathOf(turn.name)}/stop`, {}).catch((error) => {
    if (isPassing(error)) leave(turn);
    else if (error.status !== 404) throw error;  // 404: it has just ended
  }));
}

// Waits no longer for a server that does not answer. What it has begun may still become a turn; what it has not begun
// is not sent later.
function leave(turn) {
  if (live !== turn) return;
  turn.leave.abort();
  live = null;
  const unsent = pendingOf(turn.name) !== null;
  setPending(turn.name, null);
  if (unsent) giveBack(turn.name, turn.written);
  render();
  toast('The server does not answer.');
}

// Branches.

async function fork(name, place) {
  const made = await ask('POST', `${pathOf(name)}/fork`, place);
  await loadList();
  await open(made.name);
  return made;
}

// The version before a turn.
const versionBefore = (session, turn) => (turn === 0 ? 0 : session.turns[turn - 1].version);

// Runs a turn in a branch that ends before this one. `bodyOf` makes its body of the session that is left: a second
// click may come when that is not shown any more.
async function branch(turn, bodyOf) {
  await alone(async () => {
    const session = current();
    const made = await fork(active, { version: versionBefore(session, turn) });
    chat.editing = null;
    await newTurn(made.name, { parent: made.version, ...bodyOf(session) });
  });
}

function edit(turn, text) {
  return branch(turn, () => ({ content: text }));
}

function regenerate(turn) {
  return branch(turn, (session) => ({ messages: session.turns[turn].messages }));
}

async function proceed() {
  await alone(() => newTurn(active, { parent: current().version, prompt: '' }));
}

async function forkAt(name, position) {
  await alone(async () => {
    await fork(name, { position });
    toast('This is a branch of its own: write, or let the model go on.');
  });
  await changed();
}

// A branch in which another token comes at `position`: {id, text}.
async function forkWith(position, token) {
  await alone(async () => {
    const made = await fork(active, { position });
    await newTurn(made.name, { parent: made.version, tokens: [token.id] }, token.text);
  });
}

async function rewindTo(name, position) {
  const session = branches.get(name);
  if (live !== null || !await confirmed(`Rewind to token ${position}? The ${session.length - position} tokens after it are deleted in this branch.`, 'Rewind')) return;
  await alone(async () => {
    await ask('POST', `${pathOf(name)}/rewind`, { position, parent: session.version });
    await open(name);
  });
  await changed();
}

// The page's own controls.

// Says an answer to screen readers.
function announce(text) {
  byId('answer').textContent = text;
}

async function openLink(address) {
  if (await confirmed(`Open ${address}?`, 'Open')) window.open(address, '_blank', 'noopener,noreferrer');
}

messages.addEventListener('click', (event) => {
  const button = event.target.closest('[data-copy], [data-link]');
  if (button === null) return;
  if (button.dataset.copy !== undefined) copy(button.dataset.copy);
  else openLink(button.dataset.link);
});
byId('skip').addEventListener('click', (event) => {
  event.preventDefault();  // the address names the conversation
  input.focus();
});
byId('composer').addEventListener('submit', (event) => {
  event.preventDefault();
  send();
});
input.addEventListener('input', () => write(input.value));
input.addEventListener('keydown', (event) => {
  if (!sends(event)) return;
  event.preventDefault();
  send();
});
byId('stop').addEventListener('click', stop);
byId('new').addEventListener('click', () => {
  showSide(false);
  open(null);
});
byId('menu').addEventListener('click', () => showSide(!document.body.classList.contains('side-open')));
byId('shade').addEventListener('click', () => showSide(false));
byId('tree-button').addEventListener('click', () => showPanel('tree'));
byId('figures-button').addEventListener('click', () => showPanel('figures'));
byId('settings-button').addEventListener('click', () => showSettings());
document.addEventListener('keydown', (event) => {
  if (event.target.closest('dialog') !== null) return;
  if (event.key === 'Escape') {
    if (document.body.classList.contains('side-open')) showSide(false);
    else if (!byId('token').hidden) tokens.close(true);
    else stop();
  } else if (event.key === '/' && !/^(TEXTAREA|INPUT|SELECT)$/.test(event.target.tagName)) {
    event.preventDefault();
    input.focus();
  }
});
window.addEventListener('hashchange', () => {
  const name = location.hash.slice(1) || null;
  if (name !== active) open(name);
});
channel.addEventListener('message', ({ data }) => attempt(async () => {
  if (live === null && active !== null && data.running === active) return runTurn(active, null, true);
  await loadList();
  const find = (name) => summaries.find((summary) => summary.name === name);
  const gone = active !== null && find(active) === undefined;
  const changes = find(data.changed);
  const ours = current() !== null && changes !== undefined && rootOf(changes) === rootOf(current());
  // Of other conversations the list alone has changed: a message that is edited here is not touched.
  if (live === null && (gone || ours)) return refresh();
  return showList();
}));

async function start() {
  await attempt(async () => {
    await loadList();
    const { data } = await ask('GET', '/v1/models');
    byId('model').textContent = data[0].id;
    byId('model').title = `${data[0].meta.config}, ${data[0].meta.context_length} tokens of context`;
    showList();
    await open(location.hash.slice(1) || null);
  });
}

applyTheme();
write(draftOf(active));
if (stored('panel', '') !== '') showPanel(stored('panel', ''));
render();
start();
