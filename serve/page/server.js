// Requests to the server that the page came from.

import { stored } from './dom.js';

/** A reply with an error's status. `status` 0: no reply came. */
export class ServerError extends Error {
  constructor(status, message, details = {}) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

// Statuses with which the same request may yet succeed.
const kPassing = [0, 502, 503, 504];

/** Whether a request that failed so may succeed later. An answer that takes longer than the server allows would again. */
export function isPassing(error) {
  return kPassing.includes(error.status) && error.details?.type !== 'timeout_error';
}

// Kept for this tab alone, unless the settings say otherwise.
export function apiKey() {
  return sessionStorage.getItem('inlay.key') ?? stored('key', '');
}

function headersFor(body) {
  const headers = {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const key = apiKey();
  if (key !== '') headers.Authorization = `Bearer ${key}`;
  return headers;
}

async function send(method, path, body, signal) {
  let reply;
  try {
    reply = await fetch(path, {
      method,
      headers: headersFor(body),
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ServerError(0, 'The server does not answer.');
  }
  if (reply.ok) return reply;
  let details = {};
  try {
    details = (await reply.json()).error ?? {};
  } catch {
    // Not from this server: the status says what there is to say.
  }
  throw new ServerError(reply.status, details.message ?? `The server replied ${reply.status}.`, details);
}

/** @return {Promise<Object>} the reply's JSON. */
export async function ask(method, path, body = undefined, signal = undefined) {
  const reply = await send(method, path, body, signal);
  try {
    return await reply.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ServerError(0, 'The server has gone away.');
  }
}

export async function askText(path) {
  const reply = await send('GET', path);
  return reply.text();
}

/**
 * Calls `onEvent` with each event of a stream of server-sent events, as parsed JSON.
 * Ends with the stream; a connection that breaks is a ServerError of status 0.
 */
export async function follow(method, path, body, onEvent, signal) {
  const reply = await send(method, path, body, signal);
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    let chunk;
    try {
      chunk = await reader.read();
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new ServerError(0, 'The connection broke.');
    }
    if (chunk.done) return;
    const lines = (rest + chunk.value).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith('data: ')) onEvent(JSON.parse(line.slice('data: '.length)));
    }
  }
}
