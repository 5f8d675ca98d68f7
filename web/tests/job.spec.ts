/** One job: log while it runs, metrics, outputs, cost, why it waits, cancel, retry; and comparing. */
import { expect, findings, test, THEMES, USER } from './harness';

const slow = ['import time', 'for step in range(60):', "    print(f'line {step}', flush=True)", "    print(f'era: metric loss={1/(step+1):.4f} step={step}', flush=True)", '    time.sleep(0.25)'].join('\n');

test('the log comes while it runs, can be searched, and cancelling stops it', async ({ page, server }) => {
  const login = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'log' });
  const job = { name: 'talks', work: { command: ['python3', '-c', slow] }, ask: { resources: { cpu: '250m', memory: '64Mi' }, duration_s: 120, constraints: { pool: 'default' } } };
  const made = await server.ask<{ job: number }>('POST', '/jobs', job, login.token);
  await page.goto(`/jobs/${made.job}?tab=logs`);
  const log = page.getByRole('log');
  await expect(log).toContainText('line 1');
  await expect(log).toContainText('line 5');
  await page.getByRole('searchbox', { name: 'Search the log' }).fill('line 3');
  await expect(page.getByText(/of [\d,]+ lines/)).toBeVisible();
  await expect(log.locator('mark').first()).toHaveText('line 3');
  // Its metrics come while it runs, too: the last value falls.
  await page.getByRole('tab', { name: 'Metrics' }).click();
  const loss = page.locator('figure').filter({ has: page.getByRole('img', { name: 'loss' }) });
  await expect(loss.locator('canvas')).toBeVisible();
  const before = await loss.locator('figcaption').textContent();
  await expect(loss.locator('figcaption')).not.toHaveText(before ?? '');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Cancel the job' }).click();
  await expect(page.getByText('Cancelled', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: 'Retry' }).click();
  await expect(page).toHaveURL((url) => url.pathname !== `/jobs/${made.job}`);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Cancel the job' }).click();
  await expect(page.getByText('Cancelled', { exact: true })).toBeVisible();
});

test('what it printed is shown in colour and never as markup', async ({ page, seeded }) => {
  await page.goto(`/jobs/${seeded.done}?tab=logs`);
  const log = page.getByRole('log');
  await expect(log).toContainText('<b>done</b> & well');
  await expect(log.locator('b')).toHaveCount(0);
  await expect(log.locator('.fg-2').first()).toContainText('step');
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download' }).click();
  expect((await download).suggestedFilename()).toBe(`job-${seeded.done}.log`);
});

test('metrics are drawn, outputs can be fetched, and the bill is line by line', async ({ page, seeded }) => {
  await page.goto(`/jobs/${seeded.done}`);
  await expect(page.getByText('Line by line')).toBeVisible();
  await expect(page.getByText('Succeeded: every task exited with code 0.').first()).toBeVisible();
  await page.getByRole('tab', { name: 'Metrics' }).click();
  await expect(page.getByRole('img', { name: 'loss' }).locator('canvas')).toBeVisible();
  await expect(page.getByRole('img', { name: 'accuracy' }).locator('canvas')).toBeVisible();
  // What is drawn is what was told: the last of 40 steps.
  await expect(page.locator('figcaption').filter({ hasText: 'loss' })).toContainText('loss 0.025');
  const drawn = await page.getByRole('img', { name: 'loss' }).locator('canvas').evaluate((canvas: HTMLCanvasElement) => {
    const pixels = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
    return new Set(Array.from({ length: pixels.length / 4 }, (_, at) => pixels.slice(at * 4, at * 4 + 4).join())).size;
  });
  expect(drawn).toBeGreaterThan(5);
  await page.getByRole('tab', { name: 'Outputs' }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download model.json' }).click();
  expect((await download).suggestedFilename()).toBe('model.json');
});

test('says why it waits', async ({ page, seeded }) => {
  await page.goto(`/jobs/${seeded.waiting}`);
  await expect(page.getByRole('heading', { name: 'Why it waits' })).toBeVisible();
});

test('says its place in the line and who is ahead', async ({ page, server }) => {
  await server.ask('PUT', '/queues/line', { name: 'line', level: 5, policy: 'fifo', running_max: 0 });
  const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'line' });
  const hand = async (name: string) => {
    const ask = { resources: { cpu: '1', memory: '1Gi' }, duration_s: 600 };
    return (await server.ask<{ job: number }>('POST', '/jobs', { name, work: { command: ['true'] }, queue: 'line', ask }, token)).job;
  };
  const [first, second] = [await hand('first-in-line'), await hand('second-in-line')];
  await page.goto(`/jobs/${second}`);
  await expect(page.getByText(/^It waits at position 2 of its queue: /)).toBeVisible();
  await expect(page.getByText(/^Just ahead/)).toContainText(`#${first}`);
  for (const job of [first, second]) await server.ask('POST', `/jobs/${job}/cancel`);
});

test('a copy of it can be changed and handed in', async ({ page, seeded }) => {
  await page.goto(`/jobs/${seeded.promised}`);
  await page.getByRole('link', { name: 'Clone' }).click();
  await expect(page.getByRole('textbox', { name: 'GPUs', exact: true })).toHaveValue('4');
  await expect(page.getByRole('textbox', { name: 'Name' })).toHaveValue('resnet-sweep');
});

test('a running promise can be given more time, and what is left of it can be given back', async ({ page, server }) => {
  const login = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'extend' });
  const ask = { resources: { cpu: '250m', memory: '64Mi' }, duration_s: 300, constraints: { pool: 'default' } };
  const deadline = new Date(Date.now() + 330_000).toISOString();
  const job = { name: 'lasts', work: { command: ['sleep', '200'] }, ask: { ...ask, deadline }, value: '100' };
  const made = await server.ask<{ job: number }>('POST', '/jobs', job, login.token);
  await page.goto(`/jobs/${made.job}`);
  await expect(page.getByText('Running', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('menuitem', { name: 'Extend' }).click();
  await page.getByRole('textbox', { name: 'By how much' }).fill('2m');
  await page.getByRole('textbox', { name: 'At most for' }).fill('50');
  expect(await findings(page)).toEqual([]);
  await page.getByRole('button', { name: 'Extend' }).click();
  await expect(page.getByText('It may run longer.')).toBeVisible();
  await expect(page.getByText(/^Extended until/)).toBeVisible();
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('menuitem', { name: 'Release the rest' }).click();
  await page.getByRole('button', { name: 'Stop and give back' }).click();
  await expect(page.getByText('Released', { exact: true })).toBeVisible({ timeout: 20_000 });
  await expect(page.getByText('Refund for unused time')).toBeVisible();
});

test('one that is not there is said to be missing', async ({ page }) => {
  await page.goto('/jobs/999999');
  await expect(page.getByText('There is no such job')).toBeVisible();
});

test('several are compared: metrics over one another, parameters side by side', async ({ page, seeded }) => {
  await page.goto(`/compare?jobs=${seeded.done},${seeded.promised}`);
  await expect(page.getByRole('img', { name: 'loss' }).locator('canvas')).toBeVisible();
  await expect(page.getByText('ask.resources.gpu', { exact: false }).first()).toBeVisible();
  expect(await findings(page)).toEqual([]);
});

for (const theme of THEMES) {
  test(`has nothing for axe to find, in ${theme}`, async ({ page, seeded }) => {
    await page.emulateMedia({ colorScheme: theme });
    for (const tab of ['', '?tab=logs', '?tab=metrics', '?tab=outputs', '?tab=usage']) {
      await page.goto(`/jobs/${seeded.done}${tab}`);
      await expect(page.getByRole('tabpanel')).toBeVisible();
      await page.waitForTimeout(400);
      expect(await findings(page), tab).toEqual([]);
    }
  });
}
