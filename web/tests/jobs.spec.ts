/** The list of jobs: filters that a link carries, order, many at a time, alive. */
import type { Locator } from '@playwright/test';
import { ADMIN, expect, findings, test, THEMES, tokenOf, until, USER } from './harness';

test('filters by state and name, and the address says so', async ({ page, seeded }) => {
  // Only rows in sight exist, and others' tests have left jobs: a screen with room for all of them.
  await page.setViewportSize({ width: 1280, height: 3000 });
  await page.goto('/jobs');
  const table = page.getByRole('table', { name: 'Jobs' });
  await expect(table.getByRole('link', { name: 'mnist-baseline' })).toBeVisible();
  await page.getByRole('radio', { name: 'Promised' }).check();
  await expect(page).toHaveURL(/state=promised/);
  await expect(table.getByRole('link', { name: 'mnist-baseline' })).toBeHidden();
  await page.getByRole('searchbox', { name: 'Name begins with' }).fill('resnet');
  await expect(page).toHaveURL(/name=resnet/);
  await expect(table.getByRole('link')).toHaveCount(1);
  await page.reload();
  await expect(table.getByRole('link', { name: 'resnet-sweep' })).toBeVisible();
  await table.getByRole('link', { name: 'resnet-sweep' }).click();
  await expect(page).toHaveURL(new RegExp(`/jobs/${seeded.promised}$`));
});

test('tells how jobs ended from each other, and says which states there are not', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  const local = { resources: { cpu: '100m', memory: '64Mi' }, duration_s: 60, constraints: { pool: 'default' } };
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'ends-badly', work: { command: ['false'] }, ask: local }, token);
  await until(async () => (await server.ask<{ state: string }>('GET', `/jobs/${job}`)).state === 'failed');
  await page.goto('/jobs?state=failed&name=ends-badly');
  const row = page.getByRole('link', { name: 'ends-badly' });
  await expect(row).toBeVisible();
  const ended = page.getByRole('combobox', { name: 'Ended' });
  await expect(ended).toHaveValue('failed');
  await expect(page.getByRole('radio', { name: 'Over' })).toBeChecked();
  await ended.selectOption('Succeeded');
  await expect(page).toHaveURL(/state=succeeded/);
  await expect(page.getByText('No job is like that')).toBeVisible();
  // Its end looks like what it is.
  await page.goto(`/jobs/${job}`);
  const step = page.getByRole('listitem').filter({ hasText: 'Failed: a task exited with code 1.' });
  const bad = await page.evaluate(() => {
    const probe = document.body.appendChild(document.createElement('i'));
    probe.style.setProperty('color', 'var(--bad)');
    return getComputedStyle(probe).color;
  });
  expect(await step.evaluate((element) => getComputedStyle(element, '::before').backgroundColor)).toBe(bad);
  // Several at once, as a link may ask.
  await page.goto('/jobs?state=failed,broken&name=ends-badly');
  await expect(row).toBeVisible();
  await expect(page.getByRole('radio', { name: 'Failed, Promise broken' })).toBeChecked();
  await page.goto('/jobs?state=fialed');
  await expect(page.getByRole('alert')).toContainText('did you mean `failed`?');
  await expect(page.getByRole('table')).toHaveCount(0);
  expect(await findings(page)).toEqual([]);
  await page.getByRole('radio', { name: 'All' }).check();
  await expect(page.getByRole('alert')).toHaveCount(0);
  await expect(row).toBeVisible();
});

test('a cancelled promise costs in the list what its own page says', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const ask = { resources: { cpu: '8', memory: '8Gi', gpu: '2' }, duration_s: 7200, earliest: at(60), deadline: at(90), constraints: { pool: 'training' } };
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'given-up', work: { command: ['true'] }, ask, value: '900' }, token);
  await server.ask('POST', `/jobs/${job}/cancel`, undefined, token);
  const { cost } = await server.ask<{ cost: { charged: string; net: string } }>('GET', `/jobs/${job}`);
  expect(Number(cost.net)).toBeLessThan(Number(cost.charged));
  // As many digits as it takes until the page's sum adds up, and two in the list: the same amount, rounded.
  const told = async (amount: Locator) => {
    const text = await amount.innerText();
    const digits = text.split('.')[1]?.length ?? 0;
    expect(digits).toBeGreaterThanOrEqual(2);
    expect(Math.abs(Number(text) - Number(cost.net)), text).toBeLessThanOrEqual(10 ** -digits / 2 + 1e-9);
  };
  await page.goto('/jobs?state=cancelled&name=given-up');
  await told(page.getByRole('row').filter({ has: page.getByRole('link', { name: 'given-up' }) }).first().getByRole('cell').last());
  await page.goto(`/jobs/${job}`);
  await told(page.locator('dt', { hasText: 'Net' }).locator('+ dd'));
});

test('sorts by a column, both ways', async ({ page }) => {
  await page.goto('/jobs?state=promised&name=pretrain');
  const names = () => page.getByRole('table').getByRole('link').allTextContents();
  await expect.poll(names).toHaveLength(6);
  await page.getByRole('button', { name: 'Job', exact: true }).click();
  await expect.poll(names).toEqual([0, 1, 2, 3, 4, 5].map((index) => `pretrain-${index}`));
  await page.getByRole('button', { name: 'Job', exact: true }).click();
  await expect.poll(async () => (await names())[0]).toBe('pretrain-5');
});

test('another filter lets go of what was chosen', async ({ page }) => {
  await page.goto('/jobs?name=pretrain');
  await page.getByRole('checkbox', { name: 'Select all' }).check();
  await expect(page.getByText('6 selected')).toBeVisible();
  await page.getByRole('searchbox', { name: 'Name begins with' }).fill('pretrain-1');
  await expect(page.getByText('1 jobs', { exact: true })).toBeVisible();
  await expect(page.getByRole('checkbox', { name: /^Select #/ })).not.toBeChecked();
});

test('the focus stays with its job when another comes in above it', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  const hand = async (name: string) => (await server.ask<{ job: number }>('POST', '/jobs', { name, work: { command: ['true'] }, ask: { resources: { cpu: '1', memory: '1Gi' }, duration_s: 60 }, after: [{ job: 2 }] }, token)).job;
  const ids = [await hand('focus-0'), await hand('focus-1')];
  await page.goto('/jobs?name=focus');
  await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
  const link = (name: string) => page.getByRole('link', { name });
  const tick = (at: number) => page.getByRole('checkbox', { name: `Select #${ids[at]}`, exact: true });
  await link('focus-0').focus();
  ids.push(await hand('focus-2'));
  await expect(link('focus-2')).toBeVisible();
  await expect(link('focus-0')).toBeFocused();
  await tick(1).focus();
  ids.push(await hand('focus-3'));
  await expect(link('focus-3')).toBeVisible();
  await expect(tick(1)).toBeFocused();
  await page.keyboard.press('Space');
  await expect(tick(1)).toBeChecked();
  await expect(page.getByText('1 selected')).toBeVisible();
  // Pushed out of sight it is followed; where the reader scrolls away, the table has the focus and no other job.
  await page.setViewportSize({ width: 1280, height: 420 });
  const { job: first } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'focus-many', work: { command: ['true'] }, ask: { resources: { cpu: '1', memory: '1Gi' }, duration_s: 60 }, after: [{ job: 2 }], array: { from: 0, to: 39 } }, token);
  await expect(page.getByText('1 selected')).toBeVisible();
  await expect(page.getByRole('table')).toHaveAttribute('aria-rowcount', '45');
  await expect(tick(1)).toBeFocused();
  await expect(tick(1)).toBeInViewport();
  await page.getByRole('table').evaluate((table) => (table.scrollTop = 0));
  await expect(page.getByRole('table')).toBeFocused();
  for (const id of [...ids, ...Array.from({ length: 40 }, (_, at) => first + at)]) await server.ask('POST', `/jobs/${id}/cancel`, undefined, token);
});

test('cancels several at once after asking, and they change by themselves', async ({ page, server }) => {
  const login = await server.ask<{ token: string }>('POST', '/sessions', { user: 'ada', password: 'correct horse battery', label: 'bulk' });
  const after = [{ job: 2 }];
  const ids: number[] = [];
  for (const name of ['bulk-a', 'bulk-b']) {
    const made = await server.ask<{ job: number }>('POST', '/jobs', { name, work: { command: ['true'] }, ask: { resources: { cpu: '1', memory: '1Gi' }, duration_s: 60 }, after }, login.token);
    ids.push(made.job);
  }
  await page.goto('/jobs?name=bulk');
  await page.getByRole('checkbox', { name: 'Select all' }).check();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByRole('heading', { name: 'Cancel 2 jobs?' })).toBeVisible();
  expect(await findings(page)).toEqual([]);
  await page.getByRole('button', { name: 'Cancel 2 jobs' }).click();
  await expect(page.getByRole('table').getByText('Cancelled')).toHaveCount(2);
  await until(async () => (await server.ask<{ state: string }>('GET', `/jobs/${ids[0]}`)).state === 'cancelled');
});

test('cancelling several says how much comes back of all that was paid for them, and so it does', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const ids: number[] = [];
  let paid = 0;
  for (const [index, gpus] of ['1', '2'].entries()) {
    const ask = { resources: { cpu: '4', memory: '4Gi', gpu: gpus }, duration_s: 3600, earliest: at(70 + index), deadline: at(80), constraints: { pool: 'training' } };
    const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: `refunded-${index}`, work: { command: ['true'] }, ask, value: '900' }, token);
    ids.push(job);
    paid += Number((await server.ask<{ cost: { charged: string } }>('GET', `/jobs/${job}`)).cost.charged);
  }
  const balance = async () => Number((await server.ask<{ balance: string }>('GET', `/users/${USER}/wallet`)).balance);
  const before = await balance();
  await page.goto('/jobs?name=refunded');
  await page.getByRole('checkbox', { name: 'Select all' }).check();
  await page.getByRole('button', { name: 'Cancel' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('This cannot be undone.');
  const told = /What they have done so far is kept\. ([\d.,]+) of the ([\d.,]+) credits paid for them come back\./.exec((await dialog.textContent()) ?? '');
  expect(Number(told?.[2])).toBeCloseTo(paid, 2);
  expect(Number(told?.[1])).toBeGreaterThan(0);
  await page.getByRole('button', { name: 'Cancel 2 jobs' }).click();
  await expect(page.getByRole('table').getByText('Cancelled')).toHaveCount(2);
  await expect.poll(async () => Math.abs((await balance()) - before - Number(told?.[1]))).toBeLessThan(0.0051);
});

test('many are handed in again after asking, with what those of a promise cost', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const ask = { resources: { cpu: '1', memory: '1Gi' }, duration_s: 600, constraints: { pool: 'training' } };
  const bid = { name: 'anew-a', work: { command: ['true'] }, ask: { ...ask, earliest: at(90), deadline: at(95) }, value: '50' };
  const queued = { name: 'anew-b', work: { command: ['true'] }, ask, after: [{ job: 2 }] };
  for (const job of [bid, queued]) {
    const made = await server.ask<{ job: number }>('POST', '/jobs', job, token);
    await server.ask('POST', `/jobs/${made.job}/cancel`, undefined, token);
  }
  await page.goto('/jobs?name=anew');
  await page.getByRole('checkbox', { name: 'Select all' }).check();
  await page.getByRole('button', { name: 'Retry' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText(/One has a promise, which costs [\d.]+ credits now\. One waits in its queue and pays for what it uses\. They go on from the checkpoints that they saved\./);
  await dialog.getByRole('checkbox', { name: 'Start from the beginning' }).check();
  const sent: (string | null)[] = [];
  page.on('request', (request) => request.url().includes('/retry') && sent.push(new URL(request.url()).searchParams.get('fresh')));
  await page.getByRole('button', { name: 'Submit 2 jobs' }).click();
  await expect(page.getByText('4 jobs', { exact: true })).toBeVisible();
  expect(sent).toEqual(['true', 'true']);
  const { items } = await server.ask<{ items: { id: number; state: string }[] }>('GET', '/jobs?name=anew&state=active');
  expect(items).toHaveLength(2);
  for (const { id } of items) await server.ask('POST', `/jobs/${id}/cancel`);
});

test('many that leave the filter at once are gone from it', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  const ask = { resources: { cpu: '1', memory: '1Gi' }, duration_s: 60 };
  for (let index = 0; index < 20; index += 1) await server.ask('POST', '/jobs', { name: `crowd-${index}`, work: { command: ['true'] }, ask, after: [{ job: 2 }] }, token);
  await page.goto('/jobs?state=waiting&name=crowd');
  await expect(page.getByText('20 jobs', { exact: true })).toBeVisible();
  await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
  await page.getByRole('checkbox', { name: 'Select all' }).check();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Cancel 20 jobs' }).click();
  await expect(page.getByText('No job is like that')).toBeVisible();
});

test('all jobs of an array that is handed in elsewhere appear by themselves', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  await page.goto('/jobs?name=array-live');
  await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
  await expect(page.getByText('No job is like that')).toBeVisible();
  const job = { name: 'array-live', work: { command: ['true'] }, ask: { resources: { cpu: '1', memory: '1Gi' }, duration_s: 60 }, after: [{ job: 2 }], array: { from: 0, to: 11 } };
  const { job: first } = await server.ask<{ job: number }>('POST', '/jobs', job, token);
  await expect(page.getByText('12 jobs', { exact: true })).toBeVisible();
  for (let index = 0; index < 12; index += 1) await server.ask('POST', `/jobs/${first + index}/cancel`, undefined, token);
});

for (const theme of THEMES) {
  test(`has nothing for axe to find, in ${theme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: theme });
    await page.goto('/jobs');
    await expect(page.getByRole('table', { name: 'Jobs' })).toBeVisible();
    expect(await findings(page)).toEqual([]);
  });
}

test.describe('for administrators', () => {
  test.use({ account: ADMIN });
  test('shows everybody’s jobs, or only one’s own', async ({ page }) => {
    await page.goto('/jobs?name=mnist');
    await expect(page.getByRole('link', { name: 'mnist-baseline' })).toBeVisible();
    await page.getByRole('checkbox', { name: 'Only mine' }).check();
    await expect(page.getByText('No job is like that')).toBeVisible();
    // Another's are not one's own, and are named.
    await page.goto(`/jobs?name=mnist&user=${USER}`);
    await expect(page.getByRole('link', { name: 'mnist-baseline' })).toBeVisible();
    await expect(page.getByRole('checkbox', { name: 'Only mine' })).not.toBeChecked();
    const owner = page.getByRole('combobox', { name: 'Owner' });
    await expect(owner).toHaveValue(USER);
    await owner.selectOption('theo');
    await expect(page).toHaveURL(/user=theo/);
    await expect(page.getByText('No job is like that')).toBeVisible();
  });
});

test('fits a phone', async ({ page }) => {
  await page.setViewportSize({ width: 375, height: 740 });
  await page.goto('/jobs');
  await expect(page.getByRole('table', { name: 'Jobs' })).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
});
