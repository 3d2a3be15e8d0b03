// A conversation is the tree of a session and of those that were forked from it. Nothing here touches the page
// or the network: sessions are the server's (GET /v1/sessions/NAME?tokens=1).

/** The name of the session that a conversation began with. */
export function rootOf(session) {
  return session.root || session.name;
}

/**
 * What a session is made of, in order: the tokens of each prompt and of each answer.
 * @return {Array<{role: string, turn: number, from: number, to: number}>} role: "prompt" or "answer"; `turn` is an
 *     index in session.turns; positions in tokens.
 */
export function segmentsOf(session) {
  const segments = [];
  session.turns.forEach((turn, i) => {
    // A later turn may have written the end of this one anew.
    const last = Math.min(turn.end, ...session.turns.slice(i + 1).map((later) => later.begin));
    const middle = Math.min(turn.answer, last);
    if (turn.begin < middle) segments.push({ role: 'prompt', turn: i, from: turn.begin, to: middle });
    if (middle < last) segments.push({ role: 'answer', turn: i, from: middle, to: last });
  });
  return segments;
}

/**
 * The tree of all sessions of a conversation: a node is a run of tokens that the same sessions have in common, in one
 * prompt or answer.
 * @typedef {{role: string, turn: number, from: number, to: number, owner: Object, sessions: Array<Object>,
 *     children: Array<TreeNode>}} TreeNode `owner` is one of the sessions
 * @return {TreeNode} the root, which has no tokens
 */
export function treeOf(sessions) {
  const root = { role: 'root', turn: -1, from: 0, to: 0, owner: null, sessions: [...sessions], children: [] };
  for (const session of sessions) {
    let node = root;
    for (const segment of segmentsOf(session)) {
      let at = segment.from;
      while (at < segment.to) {
        node = descend(node, session, segment, at);
        at = node.to;
      }
    }
  }
  return root;
}

// The child of `node` that has the session's tokens from `at` on, as far as they agree: made or split where needed.
function descend(node, session, segment, at) {
  const same = (child) => child.role === segment.role && child.from === at &&
      child.owner.tokens[at] === session.tokens[at];
  const child = node.children.find(same);
  if (child === undefined) {
    const made = { ...segment, from: at, owner: session, sessions: [session], children: [] };
    node.children.push(made);
    return made;
  }
  let end = at;
  const most = Math.min(child.to, segment.to);
  while (end < most && child.owner.tokens[end] === session.tokens[end]) ++end;
  if (end < child.to) {
    const rest = { ...child, from: end, sessions: [...child.sessions] };
    child.to = end;
    child.children = [rest];
  }
  child.sessions.push(session);
  return child;
}

/**
 * The tree as rows to draw: a node's first child stands below it in its lane, others in lanes of their own.
 * @return {Array<{node: TreeNode, lane: number, parent: number}>} `parent`: the index of its row, or -1
 */
export function rowsOf(root) {
  const rows = [];
  let lanes = 0;
  const stack = root.children.map((child, i) => ({ node: child, parent: -1, first: i === 0 })).reverse();
  while (stack.length > 0) {
    const { node, parent, first } = stack.pop();
    if (!first || parent < 0) ++lanes;
    const lane = first && parent >= 0 ? rows[parent].lane : lanes - 1;
    const index = rows.push({ node, lane, parent }) - 1;
    const below = node.children.map((child, i) => ({ node: child, parent: index, first: i === 0 }));
    stack.push(...below.reverse());
  }
  return rows;
}

/** Whether two sessions have the same tokens before `end`. */
export function sharePrefix(a, b, end) {
  if (a.tokens.length < end || b.tokens.length < end) return false;
  for (let i = 0; i < end; ++i) {
    if (a.tokens[i] !== b.tokens[i]) return false;
  }
  return true;
}

/**
 * The other ways in which a conversation went on at a turn's prompt or answer.
 * @param {Array<Object>} sessions of the conversation
 * @param {Object} active the one that is shown
 * @param {number} turn index of the turn
 * @param {string} part "prompt" or "answer"
 * @return {{names: Array<string>, current: number}} a session for each way, the first made first
 */
export function variantsOf(sessions, active, turn, part) {
  const here = active.turns[turn];
  const begin = part === 'prompt' ? here.begin : here.answer;
  const endIn = (session) => (part === 'prompt' ? session.turns[turn].answer : session.length);
  const ways = [];
  const all = sessions.filter((session) => session.turns.length > turn && sharePrefix(session, active, begin) &&
      (part === 'prompt' || session.turns[turn].answer === here.answer));
  // The session that is shown stands for its own way.
  all.sort((a, b) => (b === active) - (a === active) || b.updated - a.updated);
  for (const session of all) {
    const end = endIn(session);
    const way = ways.find((other) => {
      if (part === 'prompt') return end === endIn(other.session) && sharePrefix(session, other.session, end);
      // One answer may be the beginning of another, where that was cut.
      const most = Math.min(answerEnd(session, turn), answerEnd(other.session, turn));
      return sharePrefix(session, other.session, most);
    });
    const first = session.turns[turn];
    if (way === undefined) ways.push({ session, first });
    else if (comparesAge(first, way.first) < 0) way.first = first;
  }
  ways.sort((a, b) => comparesAge(a.first, b.first) || (a.session.name < b.session.name ? -1 : 1));
  return { names: ways.map((way) => way.session.name), current: ways.findIndex((way) => way.session === active) };
}

// Of two turns of one second the later one has the higher version, since a fork goes on counting.
const comparesAge = (a, b) => a.created - b.created || a.version - b.version;

/** The end of the answer that begins in a turn, with what it was continued by. */
export function answerEnd(session, turn) {
  let last = turn;
  while (last + 1 < session.turns.length && session.turns[last + 1].kind === 'continuation') ++last;
  return session.turns[last].end;
}

/**
 * The text of tokens, as far as they are whole characters.
 * @return {string}
 */
export function textOf(session, from, to) {
  return session.texts.slice(from, to).join('');
}

const kReplacement = '\ufffd';

/**
 * Which token wrote which part of a text.
 * @param {Object} session
 * @param {number} from first of the tokens that may have written it
 * @param {number} to their end
 * @param {string} text what they wrote, or a part of that
 * @return {Array<{token: number, from: number, to: number}>} positions in `text`, ascending; tokens of which nothing is
 *     in the text are left out. Empty where the text is not theirs.
 */
export function alignTokens(session, from, to, text) {
  const encoder = new TextEncoder();
  const wanted = encoder.encode(text);
  const written = [];  // bytes; -1: of a character that several tokens share
  const begins = [];
  for (let token = from; token < to; ++token) {
    begins.push(written.length);
    const bytes = encoder.encode(session.texts[token]);
    const known = bytes.length === session.sizes[token] && !session.texts[token].includes(kReplacement);
    for (let i = 0; i < session.sizes[token]; ++i) written.push(known ? bytes[i] : -1);
  }
  const offset = find(written, wanted);
  if (offset < 0) return [];
  const unitAt = unitsOf(text);
  const parts = [];
  for (let i = 0; i < begins.length; ++i) {
    const clamp = (at) => Math.max(0, Math.min(wanted.length, at - offset));
    const begin = unitAt[clamp(begins[i])];
    const end = unitAt[clamp(begins[i] + session.sizes[from + i])];
    if (begin < end) parts.push({ token: from + i, from: begin, to: end });
  }
  return parts;
}

// Where `wanted` is in `written`, or -1.
function find(written, wanted) {
  for (let at = 0; at + wanted.length <= written.length; ++at) {
    let i = 0;
    while (i < wanted.length && (written[at + i] < 0 || written[at + i] === wanted[i])) ++i;
    if (i === wanted.length) return at;
  }
  return -1;
}

// For each byte of a text in UTF-8, and its end, the UTF-16 unit that its character begins at; for bytes within a
// character, the one that it ends at.
function unitsOf(text) {
  const units = [];
  let unit = 0;
  for (const character of text) {
    const code = character.codePointAt(0);
    const bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    units.push(unit);
    unit += character.length;
    for (let i = 1; i < bytes; ++i) units.push(unit);
  }
  units.push(unit);
  return units;
}

/**
 * What is shown of a session: its messages and answers, in order.
 * @return {Array<Object>} {kind: "message", message, turn} (turn -1: before the first), {kind: "answer", message, turn,
 *     last, from, to} (an answer and what it was continued by: turns `turn` to `last`), or {kind: "text", turn, from,
 *     answer, to} (a turn that has no messages)
 */
export function entriesOf(session) {
  const entries = session.messages.map((message) => ({ kind: 'message', message, turn: -1 }));
  session.turns.forEach((turn, i) => {
    if (turn.kind === 'continuation') {
      const answer = entries[entries.length - 1];
      Object.assign(answer, { message: turn.message, last: i, to: turn.end });
    } else if (turn.kind === 'answer') {
      for (const message of turn.messages) entries.push({ kind: 'message', message, turn: i });
      entries.push({ kind: 'answer', message: turn.message, turn: i, last: i, from: turn.answer, to: turn.end });
    } else {
      entries.push({ kind: 'text', turn: i, from: turn.begin, answer: turn.answer, to: turn.end });
    }
  });
  return entries;
}

/** The text of a message: its content, or the texts among its parts. */
export function messageText(message) {
  if (typeof message.content === 'string') return message.content;
  if (!Array.isArray(message.content)) return '';
  return message.content.map((part) => part.text ?? '').join('\n');
}
