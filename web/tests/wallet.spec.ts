/** The wallet: what it holds and where it went, what is left of limits, and what groups owe. */
import { readFileSync } from 'node:fs';
import { ADMIN, expect, findings, PASSWORD, test, THEMES, USER } from './harness';
import { brokenNumbers } from './harness/numbers';
import { signIn } from './harness/sign-in';

/** One who is only here, so that what others' tests spend changes nothing. */
const OWNER = 'wanda';
test.use({ account: OWNER });

const written = (amount: number) => new Intl.NumberFormat('en-GB', { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(amount);
let first = 0;

test.beforeAll(async ({ server }) => {
  await server.ask('POST', '/users', { name: OWNER, group: 'speech', credits: '10000', password: PASSWORD });
  const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: OWNER, password: PASSWORD, label: 'wallet' });
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  for (const [index, project] of ['thesis', 'thesis', undefined].entries()) {
    const ask = { resources: { cpu: '4', memory: '8Gi', gpu: '1' }, duration_s: 3600, earliest: at(2 + index), deadline: at(30), constraints: { pool: 'inference' } };
    const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: `run-${index}`, ...(project && { project }), work: { command: ['true'] }, ask, value: '900' }, token);
    first ||= job;
  }
});

test('shows balance, what is set aside, spending by project and the statement', async ({ page, server }) => {
  await server.ask('PUT', `/users/${OWNER}/quota`, { gpu: '64', credits: '9000' });
  await page.goto('/wallet');
  await expect(page.getByRole('heading', { name: 'Wallet' })).toBeVisible();
  const wallet = await server.ask<{ escrow: string; period_to: string }>('GET', `/users/${OWNER}/wallet`);
  expect(Number(wallet.escrow)).toBeGreaterThan(0);
  await expect(page.getByText(/of 9,000.00, until /)).toBeVisible();
  await expect(page.getByText(/Hours and credits are counted anew on /)).toBeVisible();
  await expect(page.getByRole('meter', { name: 'GPUs at once' })).toBeVisible();
  // What the project's jobs were charged is its sum.
  const { items } = await server.ask<{ items: { id: number; project?: string }[] }>('GET', `/jobs?user=${OWNER}`);
  const ids = new Set(items.filter((job) => job.project === 'thesis').map((job) => job.id));
  expect(ids.size).toBe(2);
  const statement = await server.ask<{ items: { job: number | null; amount: string }[] }>('GET', `/wallets/${OWNER}/statement?limit=1000`);
  const charged = statement.items.filter((line) => line.job !== null && ids.has(line.job)).reduce((sum, line) => sum - Number(line.amount), 0);
  await expect(page.getByRole('listitem').filter({ hasText: 'thesis' }).filter({ hasText: `${written(charged)} credits` })).toBeVisible();
  await expect(page.getByRole('listitem').filter({ hasText: 'no project' })).toBeVisible();
  await expect(page.getByRole('table', { name: 'Statement' }).getByRole('link', { name: `#${first}`, exact: true })).toBeVisible();
  await page.getByRole('radio', { name: 'In', exact: true }).check({ force: true });
  await expect(page.getByText('Given by an administrator')).toBeVisible();
  await expect(page.getByText('Paid for a reservation')).toBeHidden();
  await page.getByRole('listitem').filter({ hasText: 'thesis' }).getByRole('link').click();
  await expect(page).toHaveURL(/\/jobs\?project=thesis/);
  await expect(page.getByText('2 jobs', { exact: true })).toBeVisible();
});

test('what is given elsewhere is on the statement without a reload', async ({ page, server }) => {
  await page.goto('/wallet?kind=in');
  await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
  const given = page.getByRole('table', { name: 'Statement' }).getByText('Given by an administrator');
  await expect(given).toHaveCount(1);
  await server.ask('POST', `/users/${OWNER}/grants`, { amount: '5' });
  await expect(given).toHaveCount(2);
});

test('the budget that ends first is told with what is left, its own or its group’s, and what exceeds it is refused', async ({ page, server }) => {
  const left = page.getByRole('main').locator('.stats');
  const least = async () => {
    const { budgets } = await server.ask<{ budgets: { left: string }[] }>('GET', `/users/${OWNER}/wallet`);
    return written(Math.min(...budgets.map((budget) => Number(budget.left))));
  };
  await server.ask('PUT', `/users/${OWNER}/quota`, { credits: '9000' });
  await page.goto('/wallet');
  await expect(left.getByText('Left of the budget')).toBeVisible();
  await expect(left).toContainText(await least());
  await expect(page.getByRole('meter', { name: 'Budget' }).first()).toBeVisible();
  // The group's is nearer to its end: that one is told.
  const group = await server.ask<{ used: { credits: string } }>('GET', '/groups/speech');
  const most = Math.ceil(Number(group.used.credits)) + 100;
  await server.ask('PUT', `/users/${OWNER}/quota`, {});
  await server.ask('PUT', '/groups/speech/quota', { credits: String(most) });
  await page.reload();
  await expect(left.getByText('Left of the group’s budget')).toBeVisible();
  await expect(left).toContainText(await least());
  await server.ask('PUT', '/groups/speech/quota', { credits: String(Math.ceil(Number(group.used.credits))) });
  try {
    await page.goto('/jobs/new?template=gpu');
    await page.getByRole('textbox', { name: 'Command', exact: true }).fill('true');
    await page.getByRole('button', { name: 'Hold this price' }).click();
    await expect(page.getByText(/^The group’s budget is [\d,.]+ credits a period: [\d,.]+ are spent, and this may cost [\d,.]+\./)).toBeVisible();
  } finally {
    await server.ask('PUT', '/groups/speech/quota', {});
  }
});

test('credits that an administrator gives are seen at once', async ({ page, server }) => {
  await page.goto('/wallet');
  const { balance } = await server.ask<{ balance: string }>('GET', `/users/${OWNER}/wallet`);
  await expect(page.getByRole('main').getByText(written(Number(balance))).first()).toBeVisible();
  await server.ask('POST', `/users/${OWNER}/grants`, { amount: '123.45' });
  await expect(page.getByRole('main').getByText(written(Number(balance) + 123.45)).first()).toBeVisible();
});

test('the statement is a file for spreadsheets', async ({ page }) => {
  await page.goto('/wallet');
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Statement as CSV' }).click()]);
  expect(file.suggestedFilename()).toBe(`statement-${OWNER}.csv`);
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
  test('groups are charged for what their members spent on which project, also as CSV', async ({ page, server }) => {
    await page.goto('/wallet');
    const { lines } = await server.ask<{ lines: { user: string; project?: string; net: string }[] }>('GET', '/groups/speech/chargeback');
    expect(lines.map(({ user, project }) => [user, project])).toContainEqual([OWNER, 'thesis']);
    const table = page.getByRole('table', { name: 'Chargeback by group' });
    await expect(table.getByRole('row').filter({ hasText: 'speech' })).toContainText(written(lines.reduce((sum, { net }) => sum + Number(net), 0)));
    await expect(table.getByRole('row').filter({ hasText: 'thesis' })).toContainText(written(Number(lines.find(({ project }) => project === 'thesis')?.net)));
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Chargeback as CSV' }).click()]);
    const text = readFileSync(await file.path(), 'utf8');
    expect(text).toContain('from,to,group,account,project,gpu_hours,core_hours,gib_hours,charged,refunded,net');
    expect(text).toMatch(new RegExp(`speech,${OWNER},thesis,`));
    await page.getByLabel('Period of the chargeback').selectOption({ label: 'Last month' });
    await expect(table.getByRole('row').filter({ hasText: 'thesis' })).toBeHidden();
    await page.getByLabel('Period of the chargeback').selectOption({ label: 'Last 30 days' });
    await table.getByRole('link', { name: USER }).first().click();
    await expect(page.getByRole('heading', { name: `Wallet of ${USER}` })).toBeVisible();
  });

  for (const theme of THEMES) {
    test(`has nothing for axe to find with chargeback, in ${theme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme: theme });
      await page.goto(`/wallet?of=${OWNER}`);
      await expect(page.getByRole('table', { name: 'Chargeback by group' }).getByText('thesis')).toBeVisible();
      expect(await findings(page)).toEqual([]);
    });
  }
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

for (const language of ['en', 'zh']) {
  test(`on a phone every number is whole, and what was paid is read: ${language}`, async ({ page, server }) => {
    const name = `rich-${language}`;
    await server.ask('POST', '/users', { name, group: 'speech', credits: '1234567.89', password: PASSWORD });
    const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: name, password: PASSWORD, label: 'phone' });
    const job = { work: { command: ['true'] }, ask: { resources: { cpu: '4', memory: '8Gi', gpu: '1' }, duration_s: 60, constraints: { pool: 'inference' } } };
    const { job: id } = await server.ask<{ job: number }>('POST', '/jobs', job, token);
    await page.context().addCookies([{ name: 'era_session', value: await signIn(server, name, PASSWORD), url: server.url }]);
    await page.addInitScript((chosen) => localStorage.setItem('era.language', chosen), language);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto('/wallet');
    const lines = page.getByRole('table').last().getByRole('row').filter({ hasText: `#${id}` });
    await expect(lines.first()).toBeVisible();
    expect(await brokenNumbers(page)).toEqual([]);
    // What was done has room, with its number and its mark below it.
    const what = lines.first().locator('.row .cut').first();
    expect(await what.evaluate((words) => words.clientWidth / words.scrollWidth)).toBeGreaterThan(0.6);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  });
}
