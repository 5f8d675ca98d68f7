/** The wallet: what it holds and where it went, what is left of limits, and what groups owe. */
import { readFileSync } from 'node:fs';
import { ADMIN, expect, findings, test, THEMES, USER } from './harness';

test('shows balance, what is set aside, spending by project and the statement', async ({ page, server, seeded }) => {
  await server.ask('PUT', `/users/${USER}/quota`, { gpu: '64', credits: '9000' });
  await page.goto('/wallet');
  await expect(page.getByRole('heading', { name: 'Wallet' })).toBeVisible();
  const wallet = await server.ask<{ escrow: string }>('GET', `/users/${USER}/wallet`);
  expect(Number(wallet.escrow)).toBeGreaterThan(0);
  await expect(page.getByText('of 9,000.00 in this period')).toBeVisible();
  await expect(page.getByRole('meter', { name: 'GPUs at once' })).toBeVisible();
  // Six jobs `pretrain-0` to `pretrain-5` are one project, and its sum is what they were charged.
  const statement = await server.ask<{ items: { job: number | null; reason: string; amount: string }[] }>('GET', `/wallets/${USER}/statement?limit=1000`);
  const pretrain = await server.ask<{ items: { id: number; name: string }[] }>('GET', '/jobs?limit=1000');
  const ids = new Set(pretrain.items.filter((job) => job.name?.startsWith('pretrain')).map((job) => job.id));
  const charged = statement.items.filter((line) => line.job !== null && ids.has(line.job)).reduce((sum, line) => sum - Number(line.amount), 0);
  const written = new Intl.NumberFormat('en-GB', { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(charged);
  await expect(page.getByRole('listitem').filter({ hasText: 'pretrain' }).filter({ hasText: `${written} credits` })).toBeVisible();
  await expect(page.getByRole('table', { name: 'Statement' }).getByRole('link', { name: `#${seeded.promised}`, exact: true })).toBeVisible();
  await page.getByRole('radio', { name: 'In', exact: true }).check({ force: true });
  await expect(page.getByText('Given by an administrator')).toBeVisible();
  await expect(page.getByText('Paid for a reservation')).toBeHidden();
});

test('the statement is a file for spreadsheets', async ({ page }) => {
  await page.goto('/wallet');
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Statement as CSV' }).click()]);
  expect(file.suggestedFilename()).toBe(`statement-${USER}.csv`);
  const text = readFileSync(await file.path(), 'utf8');
  expect(text).toContain('at,reason,job,amount,balance');
  expect(text).toMatch(/charge,\d+,-\d/);
});

test('who only works sees no chargeback', async ({ page }) => {
  await page.goto('/wallet');
  await expect(page.getByRole('heading', { name: 'Statement' })).toBeVisible();
  await expect(page.getByText('Chargeback by group')).toBeHidden();
});

test.describe('for administrators', () => {
  test.use({ account: ADMIN });
  test('groups are charged for what their accounts used, also as CSV', async ({ page, server }) => {
    await page.goto('/wallet');
    const { used } = await server.ask<{ used: { credits: string } }>('GET', '/groups/vision');
    const table = page.getByRole('table', { name: 'Chargeback by group' });
    const written = new Intl.NumberFormat('en-GB', { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(Number(used.credits));
    await expect(table.getByRole('row').filter({ hasText: 'vision' })).toContainText(written);
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Chargeback as CSV' }).click()]);
    expect(readFileSync(await file.path(), 'utf8')).toMatch(new RegExp(`vision,${USER},`));
    await table.getByRole('link', { name: USER }).click();
    await expect(page.getByRole('heading', { name: `Wallet of ${USER}` })).toBeVisible();
  });
});

for (const theme of THEMES) {
  test(`has nothing for axe to find, in ${theme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: theme });
    await page.goto('/wallet');
    await expect(page.getByText('Paid for a reservation').first()).toBeVisible();
    expect(await findings(page)).toEqual([]);
  });
}

test('on a phone nothing is wider than the screen', async ({ page }) => {
  await page.setViewportSize({ width: 375, height: 740 });
  await page.goto('/wallet');
  await expect(page.getByText('Paid for a reservation').first()).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
});
