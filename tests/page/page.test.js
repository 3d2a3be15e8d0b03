// Every control of the page, in a browser, with a server whose model answers by script.json.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import {
  Server, answers, browser, closePage, key, kPatience, nameOf, openPage, say, server, until, withServer,
} from './harness.js';

let page;

withServer();

const button = (name) => page.getByRole('button', { name, exact: true });
const shownSession = () => server.ask('GET', `/v1/sessions/${nameOf(page)}?tokens=1`);

describe('the page', { timeout: 12 * kPatience }, () => {
  beforeEach(async () => { page = await openPage(browser, server); });
  afterEach(() => closePage(page));

  test('answers, and shows what the server keeps', async () => {
    await say(page, 'Hello');
    assert.deepEqual(await answers(page), ['Hello, world.']);
    assert.equal(await page.locator('.assistant strong').innerText(), 'world');
    assert.equal(await page.locator('#title').innerText(), 'Hello');
    assert.match(await page.title(), /^Hello/);
    assert.equal(await page.locator('#model').innerText(), 'scripted');
    const session = await shownSession();
    assert.equal(session.turns[0].message.content, 'Hello, **world**.');
    await say(page, 'Anything');
    assert.deepEqual(await answers(page), ['Hello, world.', 'What?']);
    assert.equal((await shownSession()).turns.length, 2);
  });

  test('streams, and stops where it is told', async () => {
    await page.fill('#input', 'Tick');
    await button('Send').click();
    await page.locator('.assistant[aria-busy]').getByText('tick tock tick tock').waitFor();
    const early = (await page.locator('.assistant .prose').innerText()).length;
    await until(async () => (await page.locator('.assistant .prose').innerText()).length > early, 'more of the answer');
    await button('Stop').click();
    await page.getByText(/tokens, stopped$/).waitFor();
    await button('Send').waitFor();
    const { turns } = await shownSession();
    assert.equal(turns[0].finish_reason, 'cancelled');
    assert.equal(turns[0].message.content.trim(), (await answers(page))[0].trim());
    // It goes on where it was stopped.
    await button('Continue').click();
    const live = page.locator('.assistant[aria-busy] .prose');
    assert.ok((await live.innerText()).startsWith(turns[0].message.content.trim()), 'what it goes on with stays');
    await until(async () => (await live.innerText()).length > turns[0].message.content.length + 20, 'the rest');
    await page.keyboard.press('Escape');
    await button('Send').waitFor();
    const more = await shownSession();
    assert.equal(more.turns[1].kind, 'continuation');
    assert.ok(more.turns[1].message.content.startsWith(turns[0].message.content));
    assert.equal(await page.locator('.assistant').count(), 1);
  });

  test('shows Markdown, code and thoughts', async () => {
    await say(page, 'Prose');
    const prose = page.locator('.assistant > .prose');
    assert.equal(await prose.locator('h2').innerText(), 'A heading');
    assert.equal(await prose.locator('p').first().innerText(), 'Some stress, strength and code.\nA second line');
    assert.equal(await prose.locator('em').innerText(), 'stress');
    assert.equal(await prose.locator('ol').innerText(), 'inner');
    assert.ok(await prose.locator('li.task input').isChecked());
    assert.equal(await prose.locator('blockquote').innerText(), 'quoted');
    assert.equal(await prose.locator('td').nth(1).evaluate((cell) => getComputedStyle(cell).textAlign), 'right');
    assert.equal(await prose.locator('pre').innerText(), 'def f(x):  # why\n    return "x" + str(42)');
    assert.equal(await prose.locator('.code-comment').innerText(), '# why');
    assert.equal(await prose.locator('figcaption span').innerText(), 'python');
    await say(page, 'Think');
    const thoughts = page.locator('.thoughts');
    assert.ok(!await thoughts.locator('.prose').isVisible());
    await thoughts.locator('summary').click();
    assert.equal(await thoughts.locator('.prose').innerText(), 'Two twos make');
    assert.equal((await answers(page)).at(-1), 'Four!');
  });

  test('reads Markdown as models write it', async () => {
    // Of blocks that are code, the code and what is copied of it.
    const html = (source) => page.evaluate(async (text) => {
      const { markdownBlocks } = await import('/page/markdown.js');
      return markdownBlocks(text).map((block) => {
        const element = block.make();
        const code = element.querySelector('pre code');
        return code === null ? element.outerHTML : [code.textContent, element.querySelector('button').dataset.copy];
      });
    }, source);
    assert.deepEqual(await html('It is \\( a \\_ b \\) or\n\\[ x \\]'), ['<p class="">It is \\( a _ b \\) or\n\\[ x \\]</p>']);
    assert.deepEqual(await html('a<br>b <br/> c <brx>'), ['<p class="">a<br class="">b <br class=""> c &lt;brx&gt;</p>']);
    const [before, code, after] = await html('So:\n\n    def f():\n        return 1\n\n    f()\n\nDone');
    assert.equal(before, '<p class="">So:</p>');
    assert.deepEqual(code, Array(2).fill('def f():\n    return 1\n\nf()'));
    assert.equal(after, '<p class="">Done</p>');
  });

  test('code that is still written can be scrolled and copied', async () => {
    await page.fill('#input', 'Code');
    await page.keyboard.press('Enter');
    const code = page.locator('.assistant[aria-busy] pre');
    await code.getByText('line').first().waitFor();
    const first = await code.elementHandle();
    const length = await first.evaluate((element) => element.innerText.length);
    await until(() => first.evaluate((element, least) => element.isConnected && element.innerText.length > least, length), 'more code');
    assert.ok(await first.evaluate((element) => {
      const [button] = element.closest('figure').getElementsByTagName('button');
      return button.dataset.copy === element.innerText;
    }));
    await button('Stop').click();
    await page.getByText(/tokens, stopped$/).waitFor();
  });

  test('copies where the browser gives no clipboard object', async () => {
    await say(page, 'Hello');
    await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
    await button('Copy').click();
    await page.getByText('Copied.', { exact: true }).waitFor();
    await page.focus('#input');
    await page.keyboard.press('Control+V');
    assert.equal(await page.inputValue('#input'), 'Hello, **world**.');
  });

  test('an answer goes on while others are shown as tokens', async () => {
    await say(page, 'Hello');
    await page.fill('#input', 'Tick');
    await page.keyboard.press('Enter');
    await page.getByText('tick tock tick tock').waitFor();
    await button('Tokens').first().click();
    await page.locator('.tokens').waitFor();
    assert.equal(await page.locator('.assistant[aria-busy]').getByText('tick tock tick tock').isVisible(), true);
    assert.deepEqual(await page.locator('.user .bubble').allInnerTexts(), ['Hello', 'Tick']);
    await button('Stop').click();
    await page.getByText(/tokens, stopped$/).waitFor();
  });

  test('takes nothing that a model writes as HTML, and opens no link by itself', async () => {
    await say(page, 'Hostile');
    const text = (await answers(page))[0];
    assert.ok(text.includes('<script>window.bad = 1</script>'));
    assert.ok(text.includes('<img src=x onerror="window.bad = 2">'));
    assert.equal(await page.evaluate(() => window.bad), undefined);
    assert.equal(await page.locator('#messages :is(a, img, script, iframe)').count(), 0);
    const links = page.locator('#messages button.link');
    assert.deepEqual(await links.evaluateAll((all) => all.map((link) => link.dataset.link)),
      ['https://example.org/pixel.png', 'https://example.org/', 'https://example.org/?q=secret']);
    await links.last().click();
    await page.getByText('Open https://example.org/?q=secret?').waitFor();
    await button('Cancel').click();
    assert.equal(page.context().pages().length, 1);
  });

  test('copies answers and code', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.address });
    const copied = () => page.evaluate(() => navigator.clipboard.readText());
    await say(page, 'Prose');
    await page.locator('figcaption').getByText('Copy').click();
    await page.getByText('Copied.').waitFor();
    assert.equal(await copied(), 'def f(x):  # why\n    return "x" + str(42)');
    await page.locator('.assistant > .bar').getByText('Copy').click();
    await until(async () => (await copied()).startsWith('# A heading'), 'the answer in the clipboard');
  });

  test('an edited message is a branch, and so is another answer', async () => {
    await say(page, 'Hello');
    await button('Edit').click();
    await page.getByLabel('Edit your message').fill('Toss');
    await button('Send as a new branch').click();
    await page.locator('.user').getByText('2/2').waitFor();
    await button('Previous branch').click();
    await page.getByText('1/2').waitFor();
    assert.deepEqual(await answers(page), ['Hello, world.']);
    await button('Next branch').click();
    await page.getByText('2/2').waitFor();
    // Until both sides of the coin were seen. A second click at once is none.
    await until(async () => {
      const before = nameOf(page);
      const { length } = await server.sessions();
      await button('Regenerate').dblclick();
      await until(() => nameOf(page) !== before, 'the branch');
      await until(async () => (await shownSession()).turns.length === 1, 'its answer');
      await button('Regenerate').waitFor();
      assert.equal((await server.sessions()).length, length + 1);
      return (await page.locator('.assistant .bar .variants').count()) > 0;
    }, 'another answer');
    const answer = (await answers(page))[0];
    await page.locator('.assistant').getByLabel(/branch$/).and(page.locator(':enabled')).first().click();
    await until(async () => (await answers(page))[0] !== answer, 'the other answer');
    // Escape ends an edit, and nothing is changed.
    const count = (await server.sessions()).length;
    await button('Edit').click();
    await page.keyboard.press('Escape');
    await button('Edit').waitFor();
    assert.equal((await server.sessions()).length, count);
  });

  test('a token tells its probability, and what else might have come', async () => {
    await say(page, 'Toss');
    const first = page.locator('.assistant .t').first();
    const said = await first.innerText();
    await first.hover();
    const box = page.locator('#token');
    await box.getByText('50.0 % likely here').waitFor();
    const other = said === 'Heads' ? 'Tails' : 'Heads';
    await first.click();
    await box.getByRole('button', { name: new RegExp(`^${other}`) }).click();
    await until(async () => (await answers(page))[0]?.startsWith(other), 'the other side of the coin');
    await page.locator('.assistant .variants').getByText('2/2').waitFor();
    assert.deepEqual(await answers(page), [other === 'Heads' ? 'Heads up' : 'Tails down']);
  });

  test('parts of characters belong to one token', async () => {
    await say(page, 'Emoji');
    const parts = await page.locator('.assistant .t').allTextContents();
    assert.equal(parts.join(''), 'A \u{1f600} and \u00e9\u4e16');
  });

  test('words that stand in the thoughts and in the answer belong to tokens of their own', async () => {
    await say(page, 'Twice');
    const tokensOf = (where) => page.locator(where).evaluateAll((all) => all.map((each) => Number(each.dataset.token)));
    const thought = await tokensOf('.thoughts .t');
    const said = await tokensOf('.assistant > .prose .t');
    assert.equal(said.length, 1);
    assert.ok(said[0] > thought.at(-1), `token ${said[0]} is none of the thoughts', ${thought}`);
  });

  test('a branch of raw text can be talked in', async () => {
    await say(page, 'Hello');
    const made = await server.ask('POST', `/v1/sessions/${nameOf(page)}/fork`, { position: 2 });
    await server.ask('POST', `/v1/sessions/${made.name}/turns`, { parent: made.version, prompt: 'More', max_tokens: 1 });
    await page.evaluate((hash) => { location.hash = hash; }, made.name);
    await page.locator('[aria-label="Text"] .bar').nth(1).waitFor();
    await page.fill('#input', 'and more');
    await page.keyboard.press('Enter');
    await until(async () => (await shownSession()).turns.length === 3, 'the text that goes on');
    await button('Continue').click();
    await until(async () => (await shownSession()).turns.length === 4, 'its continuation');
  });

  test('the link to the message stays in the conversation', async () => {
    await say(page, 'Hello');
    const name = nameOf(page);
    await page.locator('#skip').focus();
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'input');
    assert.equal(nameOf(page), name);
  });

  test('rewinds and forks at any token', async () => {
    await say(page, 'Hello');
    const before = await shownSession();
    await page.locator('.assistant').getByRole('button', { name: 'Tokens' }).click();
    const tokens = page.locator('.assistant button.token');
    assert.deepEqual(await tokens.allInnerTexts(), ['Hello', ',', '·**world**', '.']);
    await tokens.nth(1).click();
    await button('Fork after it').click();
    await until(async () => nameOf(page) !== before.name, 'the fork');
    await page.getByText(/^2 tokens, stopped$/).waitFor();
    const forked = await shownSession();
    assert.equal(forked.root, before.name);
    assert.equal(forked.length, before.turns[0].answer + 2);
    await button('Continue').click();
    await until(async () => (await shownSession()).length === before.length, 'the rest of the answer');
    assert.deepEqual((await shownSession()).tokens, before.tokens);
    // The same tokens: there is no other way to show.
    assert.equal(await page.locator('.variants').count(), 0);
    await page.locator('.assistant button.token').first().click();
    await button('Rewind to it').click();
    await page.getByText('The 3 tokens after it are deleted').waitFor();
    await button('Rewind').click();
    await page.getByText(/^1 tokens, stopped$/).waitFor();
    assert.equal((await shownSession()).length, before.turns[0].answer + 1);
    // The conversation that it was forked from has everything.
    assert.equal((await server.ask('GET', `/v1/sessions/${before.name}`)).length, before.length);
  });

  test('the tree shows branches, goes to them, forks, rewinds and deletes', async () => {
    await say(page, 'Hello');
    await say(page, 'Toss');
    const trunk = nameOf(page);
    await button('Tree').click();
    const nodes = page.getByRole('treeitem');
    await until(async () => (await nodes.count()) === 4, 'two prompts and two answers');
    await page.locator('.user').nth(1).getByText('Edit').click();
    await page.getByLabel('Edit your message').fill('Think');
    await page.keyboard.press('Enter');
    await until(async () => (await nodes.count()) >= 6, 'the branch in the tree');
    assert.equal(await page.locator('.tree .dot.active').count() >= 4, true);
    // To the other branch.
    await page.getByRole('treeitem', { name: /Model (Heads|Tails)/ }).click();
    await until(() => nameOf(page) === trunk, 'the first branch');
    // Of the first answer only the first token.
    await page.getByRole('treeitem', { name: /Model Hello/ }).click();
    const slider = page.getByLabel('Token of this node');
    // The conversation may be drawn anew meanwhile.
    await until(async () => {
      await slider.press('Home');
      return page.getByText(/1 of 4 tokens kept/).isVisible();
    }, 'its first token');
    assert.equal(await page.locator('.excerpt span').first().innerText(), 'Hello');
    await button('Fork here').click();
    await until(async () => nameOf(page) !== trunk, 'the fork');
    await page.getByText(/^1 tokens, stopped$/).waitFor();
    const forked = nameOf(page);
    // Rewinding and deleting ask first.
    await page.getByRole('treeitem', { name: /Model (Heads|Tails)/ }).click();
    await until(() => nameOf(page) === trunk, 'the first branch again');
    await button('Rewind here').waitFor();
    await page.getByLabel('Token of this node').press('Home');
    await button('Rewind here').click();
    await button('Rewind').click();
    await page.locator('.assistant').nth(1).getByText(/^1 tokens, stopped$/).waitFor();
    const count = (await server.sessions()).length;
    await button('Delete branch').click();
    await button('Cancel').click();
    assert.equal((await server.sessions()).length, count);
    await button('Delete branch').click();
    await button('Delete').click();
    await until(async () => (await server.sessions()).length === count - 1, 'one branch less');
    assert.ok((await server.sessions()).some(({ name }) => name === forked));
  });

  test('settings are sent, and outlive the page', async () => {
    await button('Settings').click();
    await page.getByLabel('System prompt').fill('Be brief.');
    await page.getByLabel('Temperature').fill('0');
    await page.getByLabel('Longest answer').fill('2');
    await page.getByLabel('Seed').fill('5');
    await page.getByLabel('Thinking').selectOption('off');
    await page.getByLabel('Theme').selectOption('dark');
    for (const name of ['its licence', 'what it contains']) {
      const notices = await page.request.get(await page.getByRole('link', { name }).evaluate((link) => link.href));
      assert.match(await notices.text(), /Apache License/);
    }
    await button('Done').click();
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(22, 26, 25)');
    await page.reload();
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(22, 26, 25)');
    await say(page, 'Think');
    assert.deepEqual(await answers(page), ['Four at']);
    const session = await shownSession();
    assert.deepEqual(session.messages, [{ role: 'system', content: 'Be brief.' }]);
    assert.equal(session.turns[0].seed, 5);
    assert.equal(session.turns[0].finish_reason, 'length');
    await button('Continue').click();
    await until(async () => (await answers(page))[0] === 'Four at once', 'the rest of the answer');
    await button('Settings').click();
    await page.getByLabel('Temperature').fill('7');
    await page.getByLabel('Temperature').press('Tab');
    assert.ok(!await page.getByLabel('Temperature').evaluate((input) => input.validity.valid));
    await page.getByLabel('Temperature').fill('');
    await page.getByLabel('Theme').selectOption('light');
    await button('Done').click();
    assert.equal(await page.evaluate(() => JSON.parse(localStorage.getItem('inlay.settings')).temperature), undefined);
  });

  test('figures move while the server works', async () => {
    await button('Figures').click();
    await page.getByText('Memory in use').waitFor();
    await page.fill('#input', 'Tick');
    await page.keyboard.press('Enter');
    const rate = page.locator('[data-figure="generated"] strong');
    await until(async () => parseFloat(await rate.innerText()) > 0, 'tokens each second');
    await page.getByText('1 / 0', { exact: true }).waitFor();
    await button('Stop').click();
    await page.getByText('0 / 0', { exact: true }).waitFor();
    await button('Figures').click();
    assert.ok(!await page.getByText('Memory in use').isVisible());
  });

  test('everything can be done by keys', async () => {
    await until(() => page.evaluate(() => document.activeElement.id === 'input'), 'the focus');
    await page.keyboard.type('Hello');
    await page.keyboard.press('Enter');
    await page.locator('.assistant .bar').waitFor();
    const focus = async (name, way = 'Tab') => {
      // The conversations of all tests are on the way.
      for (let i = 0; i < 200; ++i) {
        await page.keyboard.press(way);
        const text = await page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText);
        if (text === name) return;
      }
      assert.fail(`no way by Tab to ${name}`);
    };
    await focus('Copy');
    await focus('Tokens');
    await page.keyboard.press('Enter');
    await focus('Hello', 'Shift+Tab');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.evaluate(() => document.activeElement.innerText), '·**world**');
    await page.keyboard.press('Enter');
    await page.locator('#token').getByText('100 % likely here').waitFor();
    assert.ok(await page.evaluate(() => document.activeElement.closest('#token') !== null));
    await page.keyboard.press('Escape');
    assert.equal(await page.evaluate(() => document.activeElement.innerText), '·**world**');
    await focus('Tree');
    await page.keyboard.press('Enter');
    await page.getByRole('treeitem').first().focus();
    await page.keyboard.press('ArrowDown');
    assert.match(await page.evaluate(() => document.activeElement.innerText), /^Model/);
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'input');
    await page.keyboard.type('Tick');
    await page.keyboard.press('Enter');
    await page.getByText('tick tock tick tock').waitFor();
    await page.keyboard.press('Escape');
    await page.getByText(/tokens, stopped$/).waitFor();
  });

  test('is whole, and from this server alone', async () => {
    const reply = await fetch(server.address);
    const policy = reply.headers.get('content-security-policy');
    for (const rule of ["default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"])
      assert.ok(policy.includes(rule), rule);
    const loaded = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname));
    const sizes = await Promise.all(['/', ...new Set(loaded.filter((path) => path.startsWith('/page/')))].map(async (path) => {
      const file = await fetch(server.address + path);
      assert.equal(file.status, 200);
      const tag = file.headers.get('etag');
      const again = await fetch(server.address + path, { headers: { 'If-None-Match': tag } });
      assert.equal(again.status, 304);
      return (await file.arrayBuffer()).byteLength;
    }));
    assert.ok(sizes.length > 8);
    const all = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(all <= 150 * 1024, `${all} bytes`);
    assert.equal((await fetch(`${server.address}/page/page.cc`)).status, 401);
  });
});

describe('on a phone', { timeout: 12 * kPatience }, () => {
  beforeEach(async () => {
    page = await openPage(browser, server, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  });
  afterEach(() => closePage(page));

  test('nothing is wider than the screen, and all is in reach', async () => {
    const fits = async (what) => assert.ok(
      await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), what);
    await say(page, 'Prose');
    await fits('an answer');
    await page.getByLabel('Conversations').first().tap();
    await page.getByRole('button', { name: 'New conversation' }).tap();
    await say(page, 'Hello');
    await page.locator('.assistant .t').first().tap();
    await page.locator('#token').getByText('likely here').waitFor();
    await fits('a token');
    await page.keyboard.press('Escape');
    await button('Tree').tap();
    await page.getByRole('treeitem').first().waitFor();
    await fits('the tree');
    await button('Tree').tap();
    await button('Settings').tap();
    await fits('the settings');
    await button('Done').tap();
    const small = await page.locator('button:visible').evaluateAll((all) => all
      .filter((each) => !each.matches('.link, .token')).map((each) => [each.innerText, each.getBoundingClientRect()])
      .filter(([, { width, height }]) => width < 24 || height < 24).map(([text]) => text));
    assert.deepEqual(small, []);
  });
});

describe('keys', { timeout: 12 * kPatience }, () => {
  test('the page asks for the key, and keeps it for the tab', async () => {
    page = await openPage(browser, server, { key: null });
    await page.getByText('This server needs an API key.').waitFor();
    await page.getByLabel('API key').fill('a wrong key');
    await button('Done').click();
    await page.getByText('This API key is not known.').waitFor();
    await page.getByLabel('API key').fill(key);
    await button('Done').click();
    await page.getByText('scripted').waitFor();
    assert.equal(await page.evaluate(() => localStorage.getItem('inlay.key')), '""');
    await page.reload();
    await page.getByText('scripted').waitFor();
    await closePage(page);
  });

  test('a server may have no page', async () => {
    const bare = await Server.start();
    await bare.end();
    await bare.run(['--no-page']);
    assert.equal((await fetch(bare.address, { headers: { Authorization: `Bearer ${key}` } })).status, 404);
    await bare.remove();
  });
});
