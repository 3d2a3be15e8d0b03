// What axe-core finds in each state of the page, in both themes: nothing that is serious. https://github.com/dequelabs/axe-core
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import axe from 'axe-core';
import { browser, closePage, kPatience, openPage, say, server, withServer } from './harness.js';

withServer();

async function check(page, state) {
  // Colours of something that fades are none of the theme's.
  await page.evaluate(() => Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => {}))));
  await page.evaluate(axe.source);
  const { violations, passes } = await page.evaluate(() => window.axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  }));
  assert.ok(passes.length > 15, 'axe has looked');
  const found = violations.map(({ id, impact, nodes }) => `${state}: ${impact} ${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  assert.deepEqual(found, []);
}

describe('axe finds nothing', { timeout: 12 * kPatience }, () => {
  for (const [theme, options] of [['light', { colorScheme: 'light' }], ['dark', { colorScheme: 'dark' }],
    ['light, on a phone', { colorScheme: 'light', viewport: { width: 390, height: 844 } }]]) {
    test(theme, async () => {
      const page = await openPage(browser, server, { reducedMotion: 'reduce', ...options });
      const button = (name) => page.getByRole('button', { name, exact: true });
      await button('Settings').waitFor();
      await check(page, 'empty');
      await say(page, 'Prose');
      await say(page, 'Think');
      await page.locator('.thoughts summary').click();
      await page.locator('.user').last().getByRole('button', { name: 'Edit' }).click();
      await check(page, 'editing');
      await page.getByLabel('Edit your message').fill('Toss');
      await page.keyboard.press('Enter');
      await page.locator('.user').last().getByText('2/2').waitFor();
      await page.locator('.assistant').last().getByRole('button', { name: 'Tokens' }).click();
      await button('Tree').click();
      await page.getByRole('treeitem').last().click();
      await page.getByLabel('Token of this node').waitFor();
      await check(page, 'tree');
      await button('Tree').click();
      await page.locator('button.token').first().click();
      await page.locator('#token').getByText('likely here').waitFor();
      await check(page, 'token');
      await page.keyboard.press('Escape');
      await button('Figures').click();
      await page.getByText('Memory in use').waitFor();
      await check(page, 'figures');
      await button('Figures').click();
      await page.fill('#input', 'Tick');
      await page.keyboard.press('Enter');
      await page.getByText('tick tock tick tock').waitFor();
      await check(page, 'answering');
      await button('Stop').click();
      await page.getByText(/tokens, stopped$/).waitFor();
      await button('Settings').click();
      await check(page, 'settings');
      await button('Done').click();
      await closePage(page);
    });
  }
});
