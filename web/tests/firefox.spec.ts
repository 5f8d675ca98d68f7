/**
 * The main flow once in Debian's Firefox: sign in, see a price, hold and confirm it, read the log
 * of what ran. Playwright drives no Firefox but its own, so this one is driven by WebDriver BiDi.
 */
import { existsSync } from 'node:fs';
import puppeteer from 'puppeteer-core';
import { expect, NOBODY, PASSWORD, test, USER } from './harness';

const FIREFOX = process.env.ERA_FIREFOX ?? '/usr/bin/firefox-esr';
test.skip(!existsSync(FIREFOX), `no browser at ${FIREFOX}: install firefox-esr, or name one in ERA_FIREFOX`);
test.use({ account: NOBODY });

test('the main flow works in Firefox too', async ({ server, seeded }) => {
  const browser = await puppeteer.launch({ browser: 'firefox', executablePath: FIREFOX, headless: true });
  try {
    const page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 900 });
    const wrong: string[] = [];
    page.on('pageerror', (error) => wrong.push(String(error)));
    const box = (label: string) => page.locator(`::-p-aria([name="${label}"][role="textbox"])`);
    const button = (label: string) => page.locator(`::-p-aria([name="${label}"][role="button"])`);
    const text = (part: string) => page.locator(`::-p-text(${part})`).wait();

    await page.goto(server.url);
    await page.locator('input[name=username]').fill(USER);
    await page.locator('input[name=password]').fill(PASSWORD);
    await button('Sign in').click();
    await text('Promises kept');

    await page.goto(`${server.url}/jobs/new?template=gpu`);
    await box('Command').fill('true');
    await button('Hold this price').click();
    await text('Held for you');
    await button('Confirm').click();
    await text('Timeline');
    expect(page.url()).toMatch(/\/jobs\/\d+$/);

    await page.goto(`${server.url}/jobs/${seeded.done}?tab=logs`);
    await text('done');
    expect(wrong).toEqual([]);
  } finally {
    await browser.close();
  }
});
