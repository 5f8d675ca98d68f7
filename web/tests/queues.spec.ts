/** Queues and policies: who waits and why; a formula with an error, a preview, versions. */
import type { Page } from '@playwright/test';
import { ADMIN, expect, findings, test, THEMES, USER } from './harness';

test('who waits is told, with why, and nothing can be changed by whoever may not', async ({ page, seeded }) => {
  await page.goto('/queues');
  const line = page.getByRole('listitem').filter({ has: page.locator(`a[href="/jobs/${seeded.waiting}"]`) });
  await expect(line).toContainText('evaluate');
  await expect(line).toContainText('waits for another job');
  await expect(page.getByRole('button', { name: 'New queue' })).toBeHidden();
  await page.getByRole('tab', { name: /Policies/ }).click();
  await page.getByRole('link', { name: /^priority/ }).click();
  await expect(page.getByLabel('Formula')).toBeDisabled();
  await expect(page.getByRole('button', { name: 'Publish' })).toBeHidden();
});

test('others’ jobs have their places in the line and no names', async ({ page, server }) => {
  await server.ask('PUT', '/queues/hidden', { name: 'hidden', level: 4, policy: 'fifo', running_max: 0 });
  const ask = { resources: { cpu: '1', memory: '1Gi' }, duration_s: 600 };
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'secret-plan', work: { command: ['true'] }, queue: 'hidden', ask });
  await page.goto('/queues?queue=hidden');
  const line = page.getByRole('listitem').filter({ hasText: `#${job}` });
  await expect(line).toContainText('Somebody else’s job');
  await expect(line).toContainText('1');
  await expect(page.getByText('secret-plan')).toBeHidden();
});

test('who joins a line is seen by others who look at it, without a reload', async ({ page, server }) => {
  await server.ask('PUT', '/queues/watched', { name: 'watched', level: 4, policy: 'fifo', running_max: 0 });
  await page.goto('/queues?queue=watched');
  await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
  await expect(page.getByText('Somebody else’s job')).toBeHidden();
  const ask = { resources: { cpu: '1', memory: '1Gi' }, duration_s: 600 };
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'unseen', work: { command: ['true'] }, queue: 'watched', ask });
  await expect(page.getByRole('listitem').filter({ hasText: `#${job}` })).toContainText('Somebody else’s job');
  await expect(page.getByText('unseen')).toBeHidden();
});

test.describe('for administrators', () => {
  test.use({ account: ADMIN });
  interface Policy {
    name: string;
    version: number;
    rule: { order: string; formula?: string };
  }
  interface Asker {
    ask<T>(method: string, path: string, body?: unknown, token?: string): Promise<T>;
    list<T>(path: string): Promise<T[]>;
  }
  const policy = async (server: Asker, name: string) => (await server.list<Policy>('/policies')).find((one) => one.name === name);

  /** A queue in which jobs wait because none may run. */
  async function waitingQueue(server: Asker): Promise<number[]> {
    await server.ask('PUT', '/queues/held', { name: 'held', level: 3, policy: 'priority', running_max: 0 });
    const login = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'queues' });
    const jobs: number[] = [];
    for (const gpus of [1, 2, 4]) {
      const ask = { resources: { cpu: '1', memory: '1Gi', gpu: String(gpus) }, duration_s: 600, constraints: { pool: 'training' } };
      jobs.push((await server.ask<{ job: number }>('POST', '/jobs', { name: `held-${gpus}`, work: { command: ['true'] }, queue: 'held', ask }, login.token)).job);
    }
    return jobs;
  }

  /** Somebody hands something in, and the page has looked at the policies again. */
  async function refreshed(page: Page, server: Asker): Promise<void> {
    await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
    const again = page.waitForResponse((response) => new URL(response.url()).pathname === '/api/v1/policies');
    const ask = { resources: { cpu: '100m', memory: '64Mi' }, duration_s: 60 };
    await server.ask('POST', '/jobs', { name: 'is-news', work: { command: ['true'] }, ask });
    await (await again).finished();
  }

  test('a queue is made, changed and removed', async ({ page, server }) => {
    await page.goto('/queues');
    const make = page.getByRole('button', { name: 'New queue' });
    await make.click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await expect(make).toBeFocused();
    await make.click();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await expect(dialog.getByText('Give it a name.')).toBeVisible();
    await dialog.getByLabel('Name').fill('night');
    await dialog.getByLabel('Level').fill('2');
    await refreshed(page, server);
    await expect(dialog.getByLabel('Name')).toHaveValue('night');
    await dialog.getByLabel(/Share of the cluster/).fill('30');
    await dialog.getByLabel('Most jobs that run').fill('7');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await expect(page.getByText('runs at most 7')).toBeVisible();
    await expect(make).toBeFocused();
    const made = (await server.list<{ name: string; level: number; share: number }>('/queues')).find(({ name }) => name === 'night');
    expect(made).toMatchObject({ level: 2, share: 0.3, running_max: 7, borrows: true });
    await page.getByRole('button', { name: 'Change queue night' }).click();
    await dialog.getByLabel('Most jobs that run').fill('');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await expect(page.getByText('runs at most 7')).toBeHidden();
    await page.getByRole('button', { name: 'Remove queue night' }).click();
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await expect(page.getByRole('button', { name: 'Remove queue night' })).toBeHidden();
  });

  test('a formula is completed, its error shown at the character, its order tried, published and taken back', async ({ page, server }) => {
    const [one, two, four] = await waitingQueue(server);
    await page.goto('/queues?view=policies&policy=priority');
    const formula = page.getByLabel('Formula');
    const before = await formula.inputValue();
    expect(before).toContain('user_level');

    await formula.fill('wait + wiat * 2');
    await expect(page.getByText(/`wiat` is not known \(did you mean `wait`\?\)/)).toBeVisible();
    await expect(page.getByRole('button', { name: 'Publish' })).toBeDisabled();
    await page.getByRole('button', { name: 'Show where' }).click();
    expect(await formula.evaluate((box: HTMLTextAreaElement) => box.value.slice(box.selectionStart, box.selectionEnd))).toBe('wiat');

    await formula.fill('');
    await formula.pressSequentially('100 * gp');
    await expect(page.getByRole('option', { name: /^gpus/ })).toBeVisible();
    await page.keyboard.press('Enter');
    await expect(formula).toHaveValue('100 * gpus');
    await expect(page.getByRole('listbox')).toBeHidden();

    await page.getByLabel('Tried on').selectOption('held');
    const order = page.locator('section', { has: page.getByRole('heading', { name: 'How the queue would stand' }) }).getByRole('listitem');
    await expect(order.first()).toContainText(`#${four}`);
    await expect(order.first()).toContainText('up 2');
    await expect(order.nth(1)).toContainText(`#${two}`);
    await expect(order.nth(2)).toContainText(`#${one}`);
    await expect(page.getByText('Compared with version 1')).toBeVisible();
    await expect(page.locator('ins').first()).toContainText('100');

    await page.getByRole('button', { name: 'Publish' }).click();
    await expect(page.getByText('Version 2 of priority is in force.')).toBeVisible();
    expect((await policy(server, 'priority'))?.rule.formula).toBe('100 * gpus');
    // The two versions side by side: what went and what came.
    const versions = page.getByRole('group', { name: 'From version 1 to version 2' });
    await expect(versions.locator('ins').first()).toContainText('100');
    await expect(versions.locator('del').first()).toBeVisible();
    await page.getByRole('button', { name: 'Roll back to version 1' }).click();
    await expect(page.getByText('priority is back at version 1.')).toBeVisible();
    await expect(formula).toHaveValue(before);
    expect(await policy(server, 'priority')).toMatchObject({ version: 1, rule: { formula: before } });

    await page.getByRole('button', { name: 'Compare version 2 with the one in force' }).click();
    await expect(page.getByRole('group', { name: 'From version 1 to version 2' })).toBeVisible();
    await page.goto('/queues?queue=held');
    await expect(page.locator(`a[href="/jobs/${one}"]`)).toBeVisible();
    await expect(page.getByText('its queue is full').first()).toBeVisible();
  });

  test('a proposal is taken once: what is changed in it stays, and what is discarded does not come back', async ({ page, server }) => {
    const proposal = { id: 1, policy: 'priority', at: new Date().toISOString(), rule: { order: 'priority', formula: 'wait * 5' }, gain_train: 0.1, gain_test: 0.1 };
    await page.route('**/api/v1/policies/proposals?*', (route) => route.fulfill({ json: { items: [proposal], next: null } }));
    await page.goto('/queues?view=policies&policy=priority');
    const formula = page.getByLabel('Formula');
    const before = await formula.inputValue();
    const take = page.getByRole('button', { name: /priority #1$/ });
    await take.click();
    await expect(formula).toHaveValue('wait * 5');
    await formula.fill('wait * 6');
    await refreshed(page, server);
    await expect(formula).toHaveValue('wait * 6');
    await page.getByRole('button', { name: 'Discard' }).click();
    await page.getByRole('link', { name: /^fifo/ }).click();
    await expect(formula).toBeHidden();
    await page.getByRole('link', { name: /^priority/ }).click();
    await expect(formula).toHaveValue(before);
    await take.click();
    await expect(formula).toHaveValue('wait * 5');
  });

  test('jobs from far back in a long line are named in the preview', async ({ page, server }) => {
    await server.ask('PUT', '/queues/long', { name: 'long', level: 3, policy: 'fifo', running_max: 0 });
    const ask = { resources: { cpu: '1', memory: '1Gi' }, duration_s: 600 };
    await server.ask('POST', '/jobs', { name: 'sweep', work: { command: ['true'] }, queue: 'long', array: { from: 1, to: 700 }, ask });
    const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'last-in-line', work: { command: ['true'] }, queue: 'long', ask, priority: 9 });
    await page.goto('/queues?view=policies&policy=priority');
    await page.getByLabel('Formula').fill('100 * priority');
    await page.getByLabel('Tried on').selectOption('long');
    const order = page.locator('section', { has: page.getByRole('heading', { name: 'How the queue would stand' }) }).getByRole('listitem');
    await expect(order.first()).toContainText(`last-in-line #${job}`);
    await expect(order.first()).toContainText('from further back');
    await expect(order.nth(1)).toContainText('sweep');
  });

  test('a new policy is published under a name of its own', async ({ page, server }) => {
    await page.goto('/queues?view=policies');
    await page.getByRole('button', { name: 'New policy' }).click();
    await page.getByLabel('Who goes first').selectOption('las');
    await page.getByLabel('Limits of the classes, in GPU-seconds').fill('7200, 100');
    await expect(page.getByText(/rising limits/).first()).toBeVisible();
    await page.getByLabel('Limits of the classes, in GPU-seconds').fill('100, 7200');
    await page.getByRole('button', { name: 'Publish' }).click();
    await expect(page.getByText('Give it a name.')).toBeVisible();
    await page.getByLabel('Name').fill('small-first');
    await page.getByRole('button', { name: 'Publish' }).click();
    await expect(page).toHaveURL(/policy=small-first/);
    await expect(page.getByRole('link', { name: /^small-first/ })).toBeVisible();
    expect((await policy(server, 'small-first'))?.rule).toEqual({ order: 'las', limits: [100, 7200] });
  });

  for (const theme of THEMES) {
    test(`has nothing for axe to find, in ${theme}`, async ({ page, seeded }) => {
      await page.emulateMedia({ colorScheme: theme });
      await page.goto('/queues?queue=default');
      await expect(page.locator(`a[href="/jobs/${seeded.waiting}"]`)).toBeVisible();
      expect(await findings(page)).toEqual([]);
      await page.goto('/queues?view=policies&policy=priority');
      await page.getByLabel('Formula').fill('wiat');
      await expect(page.getByText(/is not known/)).toBeVisible();
      expect(await findings(page)).toEqual([]);
      await page.getByLabel('Formula').pressSequentially(' + fr');
      await expect(page.getByRole('listbox')).toBeVisible();
      expect(await findings(page)).toEqual([]);
    });
  }
});

test('fits a phone', async ({ page }) => {
  await page.setViewportSize({ width: 375, height: 740 });
  for (const path of ['/queues', '/queues?view=policies&policy=priority']) {
    await page.goto(path);
    await expect(page.getByRole('tab', { selected: true })).toBeVisible();
    expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBeLessThanOrEqual(375);
  }
});
