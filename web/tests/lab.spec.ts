/** The laboratory: a run is started, watched and read; one that makes no sense is refused. */
import { ADMIN, expect, findings, test, THEMES } from './harness';

test.use({ account: ADMIN });

test('a simulation is started, ends, and says which policy is best', async ({ page }) => {
  await page.goto('/lab');
  await page.getByRole('button', { name: 'New run' }).first().click();
  expect(await findings(page)).toEqual([]);
  await page.getByRole('spinbutton', { name: 'Jobs' }).fill('60');
  await page.getByLabel('Your own formula').fill('wait - 2 * gpus');
  await page.getByRole('button', { name: 'Start it' }).click();
  await expect(page).toHaveURL(/\/lab\/\d+$/);
  await expect(page.getByText('Done', { exact: true })).toBeVisible({ timeout: 90_000 });
  const table = page.getByRole('table', { name: 'Policies compared' });
  for (const policy of ['fifo', 'sjf', 'fair-share']) await expect(table.getByText(policy, { exact: true })).toBeVisible();
  await expect(table.getByText('best', { exact: true })).toHaveCount(1);
  const report = page.getByTitle(/^Charts of run #\d+$/);
  await expect(report).toHaveAttribute('sandbox', 'allow-scripts');
  // Its own script runs in there: it draws.
  await expect(report.contentFrame().locator('canvas, svg').first()).toBeVisible();
  const charts = page.getByRole('link', { name: /Open the charts alone/ });
  await expect(charts).toHaveAttribute('target', '_blank');
  const response = await page.request.get((await charts.getAttribute('href')) ?? '');
  expect(response.headers()['content-security-policy']).toContain('sandbox');
  expect(await findings(page)).toEqual([]);
});

test('a run says how far it is, and can be given up', async ({ page, server }) => {
  const { id } = await server.ask<{ id: number }>('POST', '/lab/runs', { kind: 'simulate', policies: ['fifo', 'sjf', 'fair-share'], jobs: 20_000, gpus: 64, load: 0.95, seed: 3 });
  await page.goto(`/lab/${id}`);
  const progress = page.getByRole('progressbar');
  await expect(progress).toBeVisible();
  const share = async () => Number((await progress.getAttribute('value')) ?? 0);
  await expect.poll(share).toBeGreaterThan(0);
  const before = await share();
  await expect.poll(share).toBeGreaterThan(before);
  await expect(page.getByText(/^\d+%$/)).toBeVisible();
  await page.getByRole('button', { name: 'Give it up' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Give it up' }).click();
  await expect(progress).toBeHidden();
});

test('this site’s history is replayed under another rule', async ({ page }) => {
  await page.goto('/lab');
  await page.getByRole('button', { name: 'New run' }).first().click();
  await page.getByRole('radio', { name: 'Replay' }).check({ force: true });
  await page.getByLabel('Order every queue by').selectOption('');
  await expect(page.getByText('Choose a policy, a mechanism, or both.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Start it' })).toBeDisabled();
  await page.getByLabel('Set prices by').selectOption('first-fit');
  await page.getByRole('button', { name: 'Start it' }).click();
  await expect(page.getByRole('heading', { name: 'All that can be compared' })).toBeVisible({ timeout: 90_000 });
  await expect(page.getByText(/The record replays exactly/)).toBeVisible();
});

test('a better formula is searched, and what was found is told', async ({ page, server }) => {
  // A history that is long enough to be cut in two.
  const ask = { resources: { cpu: '250m', memory: '64Mi' }, duration_s: 60 };
  for (let made = 0; made < 40; made++) await server.ask('POST', '/jobs', { name: 'history', work: { command: ['true'] }, ask });
  await page.goto('/lab');
  await page.getByRole('button', { name: 'New run' }).first().click();
  await page.getByRole('radio', { name: 'Tuning' }).check({ force: true });
  await page.getByRole('spinbutton', { name: 'Candidates' }).fill('4');
  await page.getByLabel('To be made small').fill('mean_wait_s');
  await page.getByRole('button', { name: 'Start it' }).click();
  await expect(page).toHaveURL(/\/lab\/\d+$/);
  await expect(page.getByText('Done', { exact: true })).toBeVisible({ timeout: 90_000 });
  await expect(page.getByText('mean_wait_s').first()).toBeVisible();
  expect(await findings(page)).toEqual([]);
});

test('what makes no sense is refused in a sentence, and nothing starts', async ({ page, server }) => {
  const count = async () => (await server.ask<{ items: unknown[] }>('GET', '/lab/runs')).items.length;
  const before = await count();
  await page.goto('/lab');
  await page.getByRole('button', { name: 'New run' }).first().click();
  await page.getByLabel('Your own formula').fill('max(wait, gpus)');
  await page.getByRole('button', { name: 'Start it' }).click();
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('a formula here may have no comma');
  expect(await count()).toBe(before);
});

for (const theme of THEMES) {
  test(`has nothing for axe to find, in ${theme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: theme });
    await page.goto('/lab');
    await expect(page.getByRole('heading', { name: 'Runs' })).toBeVisible();
    expect(await findings(page)).toEqual([]);
  });
}
