// A turn that is computed: what its events have told of it so far.

import { entriesOf, textOf } from './conversation.js';

export class LiveTurn {
  /**
   * @param {string} name of its session.
   * @param {?Object} request the body that asks for the turn; null: another one did, and `running` tells what.
   */
  constructor(name, request) {
    this.name = name;
    this.messages = request?.messages ?? (request?.content === undefined ? [] : [{ role: 'user', content: request.content }]);
    this.continues = request?.prompt !== undefined || request?.tokens !== undefined;
    this.status = 'Waiting…';
    this.leave = new AbortController();  // ends that the page waits for it
    this.begin(null, '');
  }

  /**
   * What is known of it before its first event: of one that goes on, what it goes on with.
   * @param {?Object} session as it is before the turn; null where that is not known.
   * @param {string} given the text that the answer goes on with, after what the session ends with.
   */
  begin(session, given) {
    Object.assign(this, { text: '', reasoning: '', calls: [], done: false });
    if (!this.continues || session === null) return;
    const last = entriesOf(session).at(-1);
    if (last?.kind === 'answer') {
      this.text = last.message.content;
      this.reasoning = last.message.reasoning_content ?? '';
    } else if (last !== undefined) {
      this.text = textOf(session, last.from, last.to);
    }
    this.text += given;
  }

  /** Takes an event of its stream. `session`: as with begin(). */
  take(event, session) {
    switch (event.type) {
      case 'running':
        Object.assign(this, { messages: event.messages, continues: event.kind !== 'answer' });
        this.begin(session, '');
        break;
      case 'text':
        this.text += event.delta;
        break;
      case 'reasoning':
        this.reasoning += event.delta;
        break;
      case 'call':
        // One that is gone on with has been named before.
        this.calls[event.call] ??= { name: event.name ?? '', arguments: '' };
        this.calls[event.call].arguments += event.delta ?? '';
        break;
      case 'turn':
        this.done = true;
        break;
      case 'error':
        this.error = event.error;
        break;
      default:
        break;
    }
  }

  /** What the user wrote for it; empty where that is not one message. */
  get written() {
    const text = this.messages.length === 1 ? this.messages[0].content : '';
    return typeof text === 'string' ? text : '';
  }
}
