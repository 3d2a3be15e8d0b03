// A server with a model whose answers are known, and a browser that looks at its page.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { after, before } from 'node:test';
import { chromium } from 'playwright-core';

function fromEnvironment(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run scripts/test-page`);
  return value;
}

export const key = 'key-of-the-page-tests';
// Milliseconds: a hang. Nothing waits that long where all is well, on a slow machine under load neither.
export const kPatience = 300000;

/** A server that keeps its sessions in a folder, so that it can be ended and started again. */
export class Server {
  constructor(folder) {
    this.folder = folder;
    this.port = 0;
  }

  static async start() {
    const server = new Server(await mkdtemp(join(tmpdir(), 'inlay-page-')));
    await server.run();
    return server;
  }

  get address() {
    return `http://127.0.0.1:${this.port}`;
  }

  async run(options = []) {
    // An answer without an end takes minutes to fill this context, so that a busy machine has time to stop it.
    this.process = spawn(fromEnvironment('INLAY_TEST_PROGRAM'), [
      'serve', '-m', fromEnvironment('INLAY_TEST_MODEL'), '--port', String(this.port), '--ctx-size', '524288',
      '--sessions', this.folder, ...options,
    ], { env: { ...process.env, INLAY_API_KEY: key }, stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    await new Promise((resolve, reject) => {
      this.process.stderr.on('data', (data) => {
        said += data;
        const found = / answers at http:\/\/[^:]+:(\d+)\/v1;/.exec(said);
        if (found === null) return;
        this.port = Number(found[1]);
        resolve();
      });
      this.process.once('exit', () => reject(new Error(`the server ended: ${said}`)));
    });
  }

  async end(signal = 'SIGTERM') {
    const ended = new Promise((resolve) => { this.process.once('exit', resolve); });
    this.process.kill(signal);
    await ended;
  }

  async remove() {
    await this.end('SIGKILL');
    await rm(this.folder, { recursive: true });
  }

  async ask(method, path, body = undefined) {
    const reply = await fetch(this.address + path, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const json = await reply.json();
    assert.equal(reply.status, 200, JSON.stringify(json));
    return json;
  }

  /** All sessions with their tokens, the newest last. */
  async sessions() {
    const { data } = await this.ask('GET', '/v1/sessions');
    // One may have been deleted meanwhile.
    const loaded = await Promise.all(data.map(({ name }) => this.ask('GET', `/v1/sessions/${name}?tokens=1`).catch(() => null)));
    return loaded.filter((session) => session !== null).sort((a, b) => a.updated - b.updated || a.version - b.version);
  }
}

export async function launchBrowser() {
  return chromium.launch({
    executablePath: process.env.INLAY_TEST_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
}

/**
 * The server's page in a browser of its own, which knows the key.
 * @param {Object} options of the browser's context; `hash`: what to open; `key`: another key, or null for none
 */
export async function openPage(browser, server, { hash = '', key: given = key, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(kPatience);
  const page = await openTab(context, server, hash, given);
  return page;
}

/** One more tab of the same browser. */
export async function openTab(context, server, hash = '', given = key) {
  const page = await context.newPage();
  page.problems = [];
  page.foreign = [];
  page.on('pageerror', (error) => page.problems.push(error.stack));
  page.on('console', (message) => {
    // A request that fails is said by the page where it matters.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) page.problems.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(server.address)) page.foreign.push(request.url());
  });
  if (given !== null) {
    await page.addInitScript((value) => {
      // A page that says that there is no server has no storage.
      if (location.protocol === 'http:') sessionStorage.setItem('inlay.key', value);
    }, given);
  }
  await page.goto(`${server.address}/${hash}`);
  return page;
}

/** Closes a page's browser, and holds that nothing went wrong in it. */
export async function closePage(page) {
  assert.deepEqual(page.problems, []);
  assert.deepEqual(page.foreign, [], 'the page asked other hosts');
  await page.context().close();
}

/** Sends a message and waits for the end of its answer. */
export async function say(page, text) {
  const before = await page.locator('.assistant .bar').count();
  await page.fill('#input', text);
  await page.click('#send');
  await page.locator('.assistant .bar').nth(before).waitFor();
  await page.locator('#send').waitFor();
}

/** The text of the answers that are shown. */
export const answers = (page) => page.locator('.assistant > .prose').allInnerTexts();

/** Resolves once `check` holds. */
export async function until(check, what) {
  const deadline = Date.now() + kPatience;
  for (;;) {
    const value = await check();
    if (value) return value;
    assert.ok(Date.now() < deadline, `never came true: ${what}`);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

/** Those of a file of tests, while its tests run; see withServer(). */
export let server;
export let browser;

/** Starts a server and a browser before all tests of a file, and ends them after these. */
export function withServer() {
  before(async () => {
    server = await Server.start();
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    await server?.remove();
  });
}

/** The name of the session that a page shows; empty in a new conversation. */
export const nameOf = (page) => new URL(page.url()).hash.slice(1);

/** Keeps a page waiting for the nth reply to such a GET: `asked` resolves when it is sent, `release` lets it through. */
export async function hold(page, pattern, nth = 1) {
  const held = {};
  held.asked = new Promise((resolve) => { held.tell = resolve; });
  const released = new Promise((resolve) => { held.release = resolve; });
  let count = 0;
  await page.route(pattern, async (route) => {
    if (route.request().method() === 'GET' && ++count === nth) {
      held.tell();
      await released;
    }
    await route.continue();
  });
  return held;
}
