/** Administration: accounts, quotas, credits, the market's rules, tokens, the trail, health. */
import { ADMIN, expect, findings, OVERLOADED, PASSWORD, test, THEMES, USER } from './harness';

test.describe('for administrators', () => {
  test.use({ account: ADMIN });

  test('an account is made with a password that is told once', async ({ page, server }) => {
    await page.goto('/administration');
    await page.getByRole('button', { name: 'New account' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('not a name!');
    await page.getByRole('button', { name: 'Make it' }).click();
    await expect(page.getByRole('dialog').getByRole('alert')).toBeVisible();
    await page.getByRole('textbox', { name: 'Name' }).fill('emmy');
    await page.getByRole('combobox', { name: 'Group' }).fill('algebra');
    await page.getByLabel('Credits to begin with').fill('250');
    await page.getByRole('button', { name: 'Make it' }).click();
    await expect(page.getByRole('heading', { name: 'One-time password' })).toBeVisible();
    const password = await page.getByRole('dialog').locator('code').textContent();
    expect(await findings(page)).toEqual([]);
    const login = await fetch(`${server.url}/api/v1/sessions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user: 'emmy', password, cookie: true }),
    });
    expect(login.status).toBeLessThan(300);
    await page.keyboard.press('Escape');
    await expect(page.getByRole('row').filter({ hasText: 'emmy' })).toContainText('algebra');
  });

  test('credits are given and taken back by one click', async ({ page, server }) => {
    const balance = async () => Number((await server.ask<{ balance: string }>('GET', `/users/${ADMIN}/wallet`)).balance);
    const before = await balance();
    await page.goto('/administration');
    await page.getByRole('button', { name: `Actions for ${ADMIN}` }).click();
    await page.getByRole('menuitem', { name: 'Give or take credits' }).click();
    await page.getByLabel('Amount').fill('12.50');
    await page.getByRole('button', { name: 'Give', exact: true }).click();
    await expect.poll(balance).toBe(before + 12.5);
    await page.getByRole('button', { name: 'Undo' }).click();
    await expect.poll(balance).toBe(before);
  });

  test('in a column all balances have as many decimals, however small one is', async ({ page, server }) => {
    await server.ask('POST', '/users', { name: 'penny', group: 'pennies', credits: '0.000593', password: PASSWORD });
    await page.goto('/administration');
    const row = (name: string) => page.getByRole('row').filter({ has: page.getByText(name, { exact: true }) });
    await expect(row('penny')).toContainText('<0.01');
    await expect(row('penny')).not.toContainText('0.0005');
    await page.goto('/administration?search=penny');
    await expect(row('penny')).toContainText('0.0006');
  });

  test('a quota that the group does not allow is refused in a sentence, one that it allows is set', async ({ page, server }) => {
    await server.ask('POST', '/groups', { name: 'tight', quota: { gpu: '4' } });
    await server.ask('POST', '/users', { name: 'tim', group: 'tight', password: PASSWORD });
    await page.goto('/administration?search=tim');
    const open = async () => {
      await page.getByRole('button', { name: 'Actions for tim' }).click();
      await page.getByRole('menuitem', { name: 'Budget and quota' }).click();
    };
    await open();
    await page.getByRole('textbox', { name: 'GPUs at once' }).fill('9');
    await page.getByRole('button', { name: 'Save' }).click();
    await expect(page.getByRole('dialog').getByRole('alert')).toBeVisible();
    expect(await findings(page)).toEqual([]);
    await page.getByRole('textbox', { name: 'GPUs at once' }).fill('2');
    await page.getByRole('button', { name: 'Save' }).click();
    await expect(page.getByText('The limits of tim are set.')).toBeVisible();
    expect((await server.ask<{ quota: { gpu: string } }>('GET', '/users/tim')).quota.gpu).toBe('2');
  });

  test('an account is disabled after a question, and enabled again', async ({ page, server }) => {
    await server.ask('POST', '/users', { name: 'visitor', group: 'vision', password: PASSWORD });
    await page.goto('/administration?search=visitor');
    await page.getByRole('button', { name: 'Actions for visitor' }).click();
    await page.getByRole('menuitem', { name: 'Disable' }).click();
    await expect(page.getByRole('heading', { name: 'Disable visitor?' })).toBeVisible();
    await page.getByRole('button', { name: 'Disable', exact: true }).click();
    await expect(page.getByRole('row').filter({ hasText: 'visitor' })).toContainText('Disabled');
    await page.getByRole('button', { name: 'Actions for visitor' }).click();
    await page.getByRole('menuitem', { name: 'Enable' }).click();
    await expect(page.getByRole('row').filter({ hasText: 'visitor' })).toContainText('Enabled');
  });

  test('the market gets other rules, and the old ones back', async ({ page, server }) => {
    const rules = async () => (await server.ask<{ mechanism: { name: string; floor: number } }>('GET', '/market')).mechanism;
    const before = await rules();
    await page.goto('/administration?tab=market');
    await page.getByRole('textbox', { name: 'Floor' }).fill('9999');
    await expect(page.getByText('The ceiling must not be below the floor.')).toBeVisible();
    await expect(page.getByRole('button', { name: 'Save' })).toBeDisabled();
    await page.getByRole('textbox', { name: 'Floor' }).fill('0.25');
    await page.getByRole('radio', { name: /surge/ }).check();
    await page.getByRole('textbox', { name: 'Price when full' }).fill('0.1');
    await expect(page.getByText('It must not be below the price when idle.')).toBeVisible();
    await expect(page.getByRole('button', { name: 'Save' })).toBeDisabled();
    await page.getByRole('radio', { name: /first-fit/ }).check();
    await page.getByRole('textbox', { name: 'Price', exact: true }).fill('1.5');
    await page.getByRole('button', { name: 'Save' }).click();
    await expect.poll(rules).toMatchObject({ name: 'first-fit', density: 1.5, floor: 0.25 });
    await page.getByRole('button', { name: 'Undo' }).click();
    await expect.poll(rules).toEqual(before);
  });

  test('a pool gets other rates, shares and caps, and the old ones back', async ({ page, server }) => {
    interface Pool {
      name: string;
      gpu_rate: string;
      level_caps?: Record<string, number>;
    }
    const pool = async () => (await server.list<Pool>('/pools')).find(({ name }) => name === 'inference');
    const before = await pool();
    await page.goto('/administration?tab=market');
    await page.getByRole('button', { name: 'Rates and shares of inference' }).click();
    const dialog = page.getByRole('dialog');
    const save = dialog.getByRole('button', { name: 'Save' });
    await dialog.getByLabel('Credits a GPU-hour').fill('dear');
    await expect(dialog.getByText(/^Give credits of 0 or more/)).toBeVisible();
    await expect(save).toBeDisabled();
    await dialog.getByLabel('Credits a GPU-hour').fill('2.25');
    await dialog.getByLabel('Closed to promises, %').fill('12.5');
    await dialog.getByRole('button', { name: 'Add a cap' }).click();
    await expect(save).toBeDisabled();
    await dialog.getByLabel('Level, 0 to 255').fill('3');
    await dialog.getByLabel('Share, %', { exact: true }).fill('40');
    expect(await findings(page)).toEqual([]);
    // What the server refuses is told in the dialog.
    await page.route('**/api/v1/pools/inference', (route) => route.fulfill(OVERLOADED), { times: 1 });
    await save.click();
    await expect(dialog.getByRole('alert')).toContainText('busy');
    await save.click();
    await expect.poll(async () => ({ ...(await pool()), gpu_rate: Number((await pool())?.gpu_rate) })).toMatchObject({ gpu_rate: 2.25, closed_share: 0.125, level_caps: { 3: 0.4 } });
    await expect(page.getByRole('table', { name: 'Pools' }).getByRole('row').filter({ hasText: 'inference' })).toContainText('2.25');
    await page.getByRole('button', { name: 'Undo' }).click();
    await expect.poll(pool).toEqual(before);
  });

  test('the house gets other rules, and the old ones back', async ({ page, server }) => {
    const rules = () => server.ask<Record<string, unknown>>('GET', '/settings');
    const before = await rules();
    await page.goto('/administration?tab=market');
    const [held, set] = [page.getByLabel('A held price binds for'), page.getByRole('button', { name: 'Set the rules' })];
    await expect(held).toHaveValue('1m');
    await expect(set).toBeDisabled();
    await held.fill('30');
    await expect(page.getByText('Give a length of time such as 30s, 5m, 2h or 7d.')).toBeVisible();
    await expect(set).toBeDisabled();
    // The server's own bound, told at the field.
    await held.fill('2d');
    await set.click();
    await expect(held).toHaveAttribute('aria-invalid', 'true');
    await held.fill('1m30s');
    await page.getByLabel('Refund of unused time, %').fill('55');
    await page.getByLabel('Backfill').selectOption('conservative');
    // No more is sent than was changed.
    const sent = page.waitForRequest((request) => request.method() === 'PATCH');
    await set.click();
    expect((await sent).postDataJSON()).toEqual({ hold_for: 90, refund_unused: 0.55, backfill: 'conservative' });
    await expect.poll(rules).toEqual({ ...before, hold_for: 90, refund_unused: 0.55, backfill: 'conservative' });
    await page.getByRole('button', { name: 'Undo' }).click();
    await expect.poll(rules).toEqual(before);
    await expect(held).toHaveValue('1m');
  });

  test('the tokens of another account are seen and revoked', async ({ page, server }) => {
    await server.ask('POST', '/users', { name: 'tokenia', group: 'vision', password: PASSWORD });
    const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: 'tokenia', password: PASSWORD, label: 'laptop' });
    await page.goto('/administration?search=tokenia');
    await page.getByRole('button', { name: 'Actions for tokenia' }).click();
    await page.getByRole('menuitem', { name: 'Tokens' }).click();
    const dialog = page.getByRole('dialog', { name: 'What tokenia is signed in with' });
    await expect(dialog.getByText('laptop')).toBeVisible();
    expect(await findings(page)).toEqual([]);
    const revoke = async () => {
      await dialog.getByRole('button', { name: 'Revoke laptop' }).click();
      await page.getByRole('button', { name: 'Revoke', exact: true }).last().click();
    };
    // A refusal is told in the dialog, and not under it.
    await page.route('**/users/tokenia/tokens/*', (route) => route.fulfill(OVERLOADED));
    await revoke();
    await expect(dialog.getByRole('alert')).toContainText('try again in a moment');
    await page.unroute('**/users/tokenia/tokens/*');
    await revoke();
    await expect(dialog.getByText('No token yet')).toBeVisible();
    await expect(dialog.getByRole('alert')).toHaveCount(0);
    await expect(server.ask('GET', '/sessions', undefined, token)).rejects.toThrow('401');
  });

  test('an account that somebody else makes appears by itself', async ({ page, server }) => {
    await page.goto('/administration?search=sudden');
    await expect(page.getByText('No account is called that')).toBeVisible();
    await server.ask('POST', '/users', { name: 'suddenly', group: 'vision', password: PASSWORD });
    await expect(page.getByRole('row').filter({ hasText: 'suddenly' })).toBeVisible();
  });

  test('the trail has what was done, and health says that the server is ready', async ({ page, server }) => {
    await server.ask('POST', '/groups', { name: 'trail' });
    await page.goto('/administration?tab=audit');
    await expect(page.getByRole('row').filter({ hasText: 'group.create' }).filter({ hasText: 'trail' })).toContainText('done');
    await page.getByRole('searchbox', { name: /^What, such as/ }).fill('group.');
    await expect(page).toHaveURL(/what=group/);
    await expect(page.getByRole('row').filter({ hasText: 'login' })).toHaveCount(0);
    await expect(page.getByRole('row').filter({ hasText: 'trail' })).toBeVisible();
    await page.getByRole('searchbox', { name: 'By this account' }).fill('nobody-at-all');
    await expect(page.getByText('No line fits this')).toBeVisible();
    await page.getByRole('searchbox', { name: 'By this account' }).fill('');
    await page.getByLabel('When', { exact: true }).selectOption({ label: 'In the last day' });
    await expect(page.getByRole('row').filter({ hasText: 'trail' })).toBeVisible();
    await page.getByRole('tab', { name: 'Health' }).click();
    await expect(page.getByText('The scheduler runs and the database answers.')).toBeVisible();
    await expect(page.getByText('Where time goes')).toBeVisible();
  });

  for (const theme of THEMES) {
    test(`no section has anything for axe to find, in ${theme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme: theme });
      for (const tab of ['users', 'groups', 'market', 'tokens', 'audit', 'health']) {
        await page.goto(`/administration?tab=${tab}`);
        await expect(page.getByRole('table').first()).toBeVisible();
        expect(await findings(page), tab).toEqual([]);
      }
    });
  }

  test('on a phone nothing is wider than the screen', async ({ page }) => {
    await page.setViewportSize({ width: 375, height: 740 });
    for (const tab of ['users', 'groups', 'market', 'audit', 'health']) {
      await page.goto(`/administration?tab=${tab}`);
      await expect(page.getByRole('table').first()).toBeVisible();
      expect(await page.evaluate(() => document.documentElement.scrollWidth), tab).toBeLessThanOrEqual(375);
    }
  });
});

test('others are told that it is not for them, and the server agrees', async ({ page }) => {
  await page.goto('/administration');
  await expect(page.getByText('This page is not for this account')).toBeVisible();
  await expect(page.getByRole('navigation').getByRole('link', { name: 'Administration' })).toBeHidden();
});

test('a token is made, shown once, works, and is revoked', async ({ page, server }) => {
  // As over plain HTTP: no clipboard but by a selection, of which the page of this test keeps what it was.
  await page.addInitScript(() => {
    Object.defineProperty(navigator, 'clipboard', { value: undefined });
    document.addEventListener('copy', () => (document.documentElement.dataset.copied = getSelection()?.toString()));
  });
  await page.goto('/tokens');
  await page.getByRole('button', { name: 'New token' }).click();
  await page.getByLabel('What it is for').fill('notebook');
  await page.getByRole('checkbox', { name: /Work/ }).uncheck();
  expect(await findings(page)).toEqual([]);
  await page.getByRole('button', { name: 'Make the token' }).click();
  await expect(page.getByRole('heading', { name: 'Your token' })).toBeVisible();
  const token = (await page.getByRole('dialog').locator('code').first().textContent()) ?? '';
  const copy = page.getByRole('dialog').getByRole('button', { name: 'Copy' }).first();
  await copy.click();
  await expect(page.getByText('Copied', { exact: true })).toBeAttached();
  await expect(page.locator('html')).toHaveAttribute('data-copied', token);
  await expect(copy).toBeFocused();
  // Where not even that is allowed it says so, and the text is selected.
  await page.evaluate(() => (document.execCommand = () => false));
  await copy.click();
  await expect(page.getByRole('dialog').getByText(/copy it by hand/)).toBeVisible();
  expect(await page.evaluate(() => getSelection()?.toString())).toBe(token);
  expect((await server.ask<{ name: string }>('GET', '/sessions', undefined, token)).name).toBe(USER);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Revoke notebook' }).click();
  await page.getByRole('button', { name: 'Revoke', exact: true }).last().click();
  await expect(page.getByText('notebook is revoked.')).toBeVisible();
  await expect(server.ask('GET', '/sessions', undefined, token)).rejects.toThrow('401');
});
