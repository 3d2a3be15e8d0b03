// Takes the docs' pictures of the page: node pictures.js FOLDER. See scripts/page-pictures, which starts it.
import { join } from 'node:path';
import process from 'node:process';
import {
  Server, closePage, launchBrowser, openPage, say, until,
} from './harness.js';

const folder = process.argv[2];
const server = await Server.start();
const browser = await launchBrowser();
const kSize = { viewport: { width: 1180, height: 720 }, reducedMotion: 'reduce' };
const take = (page, name) => page.screenshot({ path: join(folder, `${name}.png`) });
const button = (page, name) => page.getByRole('button', { name, exact: true });

// A forked conversation, in both themes; answers by the demo model with fixed seeds.
async function settings(page, seed, most) {
  await button(page, 'Settings').click();
  await page.getByLabel('Seed').fill(String(seed));
  await page.getByLabel('Longest answer').fill(String(most));
  await button(page, 'Done').click();
}

const light = await openPage(browser, server, { ...kSize, colorScheme: 'light' });
await settings(light, 3, 70);
await say(light, 'ROMEO:');
await settings(light, 4, 60);
await say(light, 'JULIET:');
await button(light, 'Tree').click();
await settings(light, 9, 60);
await button(light, 'Regenerate').last().click();
await light.locator('.assistant').last().getByText('2/2').waitFor();
await light.locator('.user').first().getByRole('button', { name: 'Edit' }).click();
await light.getByLabel('Edit your message').fill('FRIAR LAURENCE:');
await light.keyboard.press('Enter');
await light.locator('.user').first().getByText('2/2').waitFor();
await light.getByRole('treeitem', { name: /Model/ }).nth(2).click();
await light.locator('.assistant').nth(1).waitFor();
await light.locator('.assistant .t').nth(6).click();
await light.locator('#token').getByText('likely here').waitFor();
await take(light, 'page-light');
const hash = new URL(light.url()).hash;
await closePage(light);

const dark = await openPage(browser, server, { ...kSize, colorScheme: 'dark', hash });
await button(dark, 'Tree').click();
await dark.locator('.assistant').first().getByRole('button', { name: 'Tokens' }).click();
await dark.locator('button.token').nth(12).click();
await dark.locator('button.token[data-likely]').first().waitFor();
await dark.keyboard.press('Escape');
await dark.getByRole('treeitem').last().hover();
await dark.locator('#messages').evaluate((log) => log.scrollTo(0, 0));
await take(dark, 'page-dark');
await closePage(dark);

// The figures while other clients ask.
const panel = await openPage(browser, server, { ...kSize, colorScheme: 'light', hash });
await button(panel, 'Figures').click();
const load = [...Array(8).keys()].map(async (client) => {
  for (let i = 0; i < 12; ++i) {
    await server.ask('POST', '/v1/completions', { prompt: `KING RICHARD ${client} ${i}:\n`.repeat(20), max_tokens: 400, seed: i, ignore_eos: true });
  }
});
await until(async () => (await panel.locator('[data-figure="generated"] polyline').getAttribute('points').catch(() => ''))?.split(' ').length > 12, 'a curve');
await take(panel, 'page-figures');
await Promise.all(load);
await closePage(panel);

const phone = await openPage(browser, server, { viewport: { width: 390, height: 780 }, colorScheme: 'dark', hash, reducedMotion: 'reduce' });
await phone.locator('.assistant .bar').first().waitFor();
await take(phone, 'page-phone');
await closePage(phone);

await browser.close();
await server.remove();
