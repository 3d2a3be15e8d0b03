// Nothing that was written or answered is lost: while servers, connections, tabs and conversations come and go.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import {
  answers, browser, closePage, hold, kPatience, nameOf, openPage, openTab, say, server, until, withServer,
} from './harness.js';

let page;

withServer();

const button = (name) => page.getByRole('button', { name, exact: true });
const lastSession = async () => (await server.sessions()).at(-1);
const shownSession = () => server.ask('GET', `/v1/sessions/${nameOf(page)}?tokens=1`);

describe('nothing is lost', { timeout: 12 * kPatience }, () => {
  beforeEach(async () => { page = await openPage(browser, server); });
  afterEach(() => closePage(page));

  test('what is not sent yet stays', async () => {
    const held = await hold(page, '**/v1/models');
    await page.reload();
    await held.asked;
    await page.fill('#input', 'Written while the page loads');
    held.release();
    await page.locator('#model').getByText('scripted').waitFor();
    assert.equal(await page.inputValue('#input'), 'Written while the page loads');
    await page.reload();
    await page.locator('#model').getByText('scripted').waitFor();
    await until(async () => (await page.inputValue('#input')) === 'Written while the page loads', 'it over a reload');
    // Nor does it go with the conversation that it was meant for.
    await say(page, 'Hello');
    await server.ask('DELETE', `/v1/sessions/${nameOf(page)}`);
    await page.fill('#input', 'Hello again');
    await page.keyboard.press('Enter');
    await page.getByText('What you wrote is below.').waitFor();
    assert.equal(await page.inputValue('#input'), 'Hello again');
    assert.equal(nameOf(page), '');
  });

  test('an answer that the server allows no time for is not begun again', async () => {
    await server.end();
    await server.run(['--timeout', '1']);
    await page.fill('#input', 'Tick');
    await page.keyboard.press('Enter');
    await page.locator('#toast').getByText('deadline').waitFor();
    await button('Send').waitFor();
    assert.equal(await page.inputValue('#input'), 'Tick');
    await server.end();
    await server.run();
  });

  test('a conversation that cannot be opened takes nothing away', async () => {
    await say(page, 'Hello');
    const name = nameOf(page);
    await page.fill('#input', 'Toss');
    const closed = (await server.ask('POST', '/v1/sessions', {})).name;
    await page.route(`**/v1/sessions/${closed}*`, (route) => route.fulfill({ status: 500, body: '{}' }));
    await page.evaluate((hash) => { location.hash = hash; }, closed);
    await page.getByText('The server replied 500.').waitFor();
    assert.equal(nameOf(page), name);
    assert.equal(await page.inputValue('#input'), 'Toss');
    await page.locator('#input').press('Enter');
    await page.locator('.assistant .bar').nth(1).waitFor();
    assert.equal((await shownSession()).turns.length, 2);
    await server.ask('DELETE', `/v1/sessions/${closed}`);
  });

  test('a message that becomes no turn comes back in front of the next one', async () => {
    await say(page, 'Hello');
    let release;
    const released = new Promise((resolve) => { release = resolve; });
    await page.route('**/turns', async (route) => {
      await released;
      await route.fulfill({ status: 429, body: '{}' });
    });
    await page.fill('#input', 'first');
    await page.keyboard.press('Enter');
    await page.getByText('Waiting…').waitFor();
    await page.fill('#input', 'second');
    release();
    await page.getByText('The server replied 429.').waitFor();
    assert.equal(await page.inputValue('#input'), 'first\nsecond');
  });

  test('a proxy without a server behind it is waited for', async () => {
    await say(page, 'Hello');
    let asked = 0;
    await page.route('**/turns', (route) => (++asked <= 2 ? route.fulfill({ status: 503, body: '{}' }) : route.continue()));
    await say(page, 'Toss');
    assert.equal(asked, 3);
    assert.equal((await shownSession()).turns.length, 2);
  });

  test('a click counts while the list of what is shown already is still on its way', async () => {
    await say(page, 'Hello');
    const before = await shownSession();
    await page.locator('.assistant').getByRole('button', { name: 'Tokens' }).click();
    await page.locator('.assistant button.token').nth(1).click();
    const list = await hold(page, '**/v1/sessions', 2);  // the first one is asked for before the fork is shown
    await button('Fork after it').click();
    await list.asked;
    await page.getByText(/^2 tokens, stopped$/).waitFor();
    await button('Continue').click();
    await until(async () => (await shownSession()).length === before.length, 'the rest of the answer');
    list.release();
    await button('Send').waitFor();
    assert.deepEqual((await shownSession()).tokens, before.tokens);
  });

  test('a conversation that is slow to come changes nothing once another one is shown', async () => {
    await say(page, 'The first one');
    const first = nameOf(page);
    await button('New conversation').click();
    await say(page, 'The second one');
    const second = nameOf(page);
    const slow = await hold(page, `**/v1/sessions/${first}?tokens=1`);
    await button('The first one').click();
    await slow.asked;
    const loaded = page.waitForResponse((reply) => reply.url().includes(`/${second}?`));
    await button('The second one').click();
    await loaded;
    const late = page.waitForResponse((reply) => reply.url().includes(`/${first}?`));
    slow.release();
    await (await late).finished();
    await page.evaluate(() => new Promise(requestAnimationFrame));
    await say(page, 'Hello');
    assert.equal(nameOf(page), second);
    assert.deepEqual(await answers(page), ['What?', 'Hello, world.']);
  });

  test('a reload in the middle of an answer loses nothing of it', async () => {
    await page.fill('#input', 'Tick');
    await page.keyboard.press('Enter');
    await page.getByText('tick tock tick tock').waitFor();
    await page.reload();
    await page.locator('.assistant[aria-busy]').getByText('tick tock tick tock').waitFor();
    assert.equal(await page.locator('.user .bubble').innerText(), 'Tick');
    await button('Stop').click();
    await page.getByText(/tokens, stopped$/).waitFor();
    const { turns } = await shownSession();
    assert.equal(turns.length, 1);
    assert.ok(turns[0].message.content.startsWith('tick tock tick'));
    assert.equal((await answers(page))[0].trim(), turns[0].message.content.trim());
  });

  test('a server that is gone and comes back goes on with the request', async () => {
    await say(page, 'Hello');
    await page.fill('#input', 'Tick');
    await page.keyboard.press('Enter');
    await page.getByText('tick tock tick tock').waitFor();
    await server.end('SIGKILL');
    await page.getByText('The server does not answer; trying again…').waitFor();
    await server.run();
    await page.getByText('tick tock tick tock').waitFor();
    await button('Stop').click();
    await page.getByText(/tokens, stopped$/).waitFor();
    const { turns } = await shownSession();
    assert.equal(turns.length, 2);
    assert.deepEqual(turns[1].messages.map(({ content }) => content), ['Tick']);
    // Stopped while it is gone, a message is not sent later.
    await server.end('SIGTERM');
    await page.fill('#input', 'Hello once');
    await page.keyboard.press('Enter');
    await page.getByText('trying again').waitFor();
    await button('Stop').click();
    await button('Send').waitFor();
    assert.equal(await page.inputValue('#input'), 'Hello once');
    await page.fill('#input', '');
    // Asked while it is gone, it says so, and keeps what was written.
    await button('New conversation').click();
    await page.fill('#input', 'Kept');
    await page.keyboard.press('Enter');
    await page.getByText('The server does not answer.', { exact: true }).waitFor();
    assert.equal(await page.inputValue('#input'), 'Kept');
    await server.run();
    await page.getByRole('button', { name: /^Hello/ }).first().click();
    await until(async () => (await page.locator('.assistant').count()) === 2, 'the conversation');
    await server.end('SIGTERM');
    await page.fill('#input', 'Hello again');
    await page.keyboard.press('Enter');
    await page.getByText('trying again').waitFor();
    await page.goto('about:blank');
    await server.run();
    await page.goto(`${server.address}/#${(await lastSession()).name}`);
    // Its text is whole before it is stored; what can be done with it is shown after that.
    await page.locator('.assistant .bar').nth(2).waitFor();
    assert.equal((await answers(page)).at(-1), 'Hello, world.');
    assert.equal((await shownSession()).turns.length, 3);
  });

  test('two conversations wait for a server that is gone', async () => {
    await say(page, 'Hello');
    const name = nameOf(page);
    await server.end('SIGKILL');
    await page.fill('#input', 'Twice');
    await page.keyboard.press('Enter');
    await page.getByText('trying again').waitFor();
    await button('New conversation').click();
    await server.run();
    await say(page, 'Toss');
    await page.evaluate((hash) => { location.hash = hash; }, name);
    await page.locator('.assistant .bar').nth(1).waitFor();
    assert.deepEqual((await shownSession()).turns.map((turn) => turn.messages.at(-1)?.content), ['Hello', 'Twice']);
  });

  test('two tabs show the same', async () => {
    await say(page, 'Hello');
    const other = await openTab(page.context(), server, `#${nameOf(page)}`);
    await other.locator('.assistant .bar').waitFor();
    await page.fill('#input', 'Tick');
    await page.keyboard.press('Enter');
    await other.locator('.assistant[aria-busy]').getByText('tick tock tick tock').waitFor();
    await other.getByRole('button', { name: 'Stop' }).click();
    await page.getByText(/tokens, stopped$/).waitFor();
    await other.getByText(/tokens, stopped$/).waitFor();
    assert.deepEqual(await answers(other), await answers(page));
    // What is edited here stays when a tab changes another conversation.
    const elsewhere = await openTab(page.context(), server);
    await page.locator('.user').last().getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Edit your message').fill('half a message');
    await say(elsewhere, 'Think');
    await page.getByRole('button', { name: 'Think', exact: true }).waitFor();
    assert.equal(await page.getByLabel('Edit your message').inputValue(), 'half a message');
    // Nor does another look at the same one take it, nor a turn that comes from elsewhere.
    await page.locator('.assistant').first().getByRole('button', { name: 'Tokens' }).click();
    await say(other, 'Toss');
    await page.locator('.assistant .bar').nth(2).waitFor();
    assert.equal(await page.getByLabel('Edit your message').inputValue(), 'half a message');
    await elsewhere.close();
    await page.getByLabel('Delete Hello').first().click();
    await button('Delete').click();
    await other.getByText('The server no longer has this conversation.').waitFor();
    assert.deepEqual(other.problems, []);
    await other.close();
  });

  test('who is late sees what another browser has said, and keeps the message', async () => {
    await say(page, 'Hello');
    const other = await openPage(browser, server, { hash: `#${nameOf(page)}` });
    await other.locator('.assistant .bar').waitFor();
    await say(page, 'Toss');
    await other.fill('#input', 'Think');
    await other.keyboard.press('Enter');
    await other.getByText(/is at version 2, not at 1/).waitFor();
    assert.equal(await other.locator('.assistant').count(), 2);
    assert.equal(await other.inputValue('#input'), 'Think');
    await closePage(other);
  });

  test('messages that are not sent wait in their conversations', async () => {
    await say(page, 'Hello');
    const name = nameOf(page);
    await page.fill('#input', 'later');
    await button('New conversation').click();
    assert.equal(await page.inputValue('#input'), '');
    // Not by its title, which conversations of other tests have too.
    await page.evaluate((hash) => { location.hash = hash; }, name);
    await until(async () => (await page.inputValue('#input')) === 'later', 'the draft');
    // Shift and Enter make a line.
    await page.locator('#input').press('Shift+Enter');
    assert.equal(await page.inputValue('#input'), 'later\n');
  });

  test('a message that waited and is sent does not come back', async () => {
    await say(page, 'Hello');
    const name = nameOf(page);
    await button('New conversation').click();
    await page.fill('#input', 'Toss');
    await page.evaluate((hash) => { location.hash = hash; }, name);
    await until(async () => (await page.inputValue('#input')) === '', 'the other conversation');
    await button('New conversation').click();
    assert.equal(await page.inputValue('#input'), 'Toss');
    await page.locator('#input').press('Enter');
    await page.locator('.assistant .bar').waitFor();
    await button('New conversation').click();
    assert.equal(await page.inputValue('#input'), '');
  });
});
