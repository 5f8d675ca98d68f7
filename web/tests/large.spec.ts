/**
 * A long list: 100,000 jobs. The first content is there within a second, and
 * no frame takes longer than 50 ms while the jobs scroll; both are measured in the browser. Of a
 * few loads the quickest counts: others' work on the machine is not the page's.
 */
import { expect, NOBODY, PASSWORD, test, until } from './harness';
import { busiestFrameMs } from './harness/frames';
import { Server } from './harness/server';

const NODES = `
nodes:
  - { name: gpu, count: 4, pool: training, capacity: { cpu: 64, memory: 512Gi, gpu: 8, gpu.model: h100 } }
`;
const JOBS = 100_000;
const TRIES = 4;

test.use({ account: NOBODY });

test('100,000 jobs: the first content comes within a second, and scrolling never stutters', async ({ browser }) => {
  test.setTimeout(180_000);
  const server = await Server.start(NODES);
  try {
    await server.ask('POST', '/users', { name: 'big', role: 'administrator', credits: '100000', password: PASSWORD });
    await until(async () => (await server.ask<unknown[]>('GET', '/nodes')).length > 4);
    const ask = { resources: { gpu: '1', cpu: '1', memory: '1Gi' }, duration_s: 3600 };
    const earliest = new Date(Date.now() + 5 * 3_600_000).toISOString();
    const anchor = await server.ask<{ job: number }>('POST', '/jobs', { name: 'anchor', work: { command: ['true'] }, ask: { ...ask, earliest }, value: '1000' });
    await server.ask('POST', '/jobs', { name: 'sweep', work: { command: ['true'] }, ask, array: { from: 1, to: JOBS }, after: [{ job: anchor.job }] });

    const context = await browser.newContext({ baseURL: server.url, viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    await page.goto('/');
    await page.getByLabel('Account').fill('big');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.keyboard.press('Enter');
    await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();

    const first: number[] = [];
    for (let round = 0; round < TRIES; round += 1) {
      await page.goto('/jobs');
      await page.locator('[role=row] a').first().waitFor();
      // From the navigation's beginning until rows are there.
      first.push(await page.evaluate(() => performance.now()));
      if (Math.min(...first) < 1000) break;
    }
    expect(Math.min(...first), `first content after ${first.map(Math.round).join(', ')} ms`).toBeLessThan(1000);

    await expect(page.getByText('100,001 jobs', { exact: true }).or(page.getByText(/^the newest 100,/))).toBeVisible({ timeout: 90_000 });
    const scroll = (frame: number) => page.evaluate((to) => document.querySelector('[role=table]')?.scrollTo(0, to), frame * 700);
    await scroll(0);
    const busiest = await busiestFrameMs(page, 60, scroll);
    console.log(JSON.stringify({ jobs: JOBS + 1, first_content_ms: Math.round(Math.min(...first)), busiest_frame_ms: Math.round(busiest) }));
    expect(busiest).toBeLessThan(50);
    await page.evaluate(() => document.querySelector('[role=table]')?.scrollTo(0, 1e9));
    await expect(page.getByRole('link', { name: /anchor|sweep/ }).first()).toBeVisible();
    await context.close();
  } finally {
    await server.stop();
  }
});
