/** The door: the one-time password, the first welcome, a wrong password, the way out. */
import { expect, findings, NOBODY, PASSWORD, test, THEMES, USER } from './harness';
import { Server } from './harness/server';

test.use({ account: NOBODY });

test('a wrong password is told in a sentence, and the right one opens', async ({ page }) => {
  await page.goto('/');
  await page.getByLabel('Account').fill(USER);
  await page.getByLabel('Password').fill('not this one');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('alert')).toContainText('no account has this name and password');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  // The session outlives the document, and changes still carry its second secret.
  await page.reload();
  await page.getByRole('button', { name: 'Account and settings' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
  await page.goto('/jobs');
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
});

test('the first start asks for a password of one’s own and then shows three things to try', async ({ page, browser }) => {
  const fresh = await Server.start();
  const other = await browser.newPage({ baseURL: fresh.url });
  try {
    await other.goto('/');
    await other.getByLabel('Account').fill('admin');
    await other.getByLabel('Password').fill(fresh.firstPassword);
    await other.getByRole('button', { name: 'Sign in' }).click();
    await expect(other.getByRole('heading', { name: 'Choose a password of your own' })).toBeVisible();
    await other.getByLabel('One-time password').fill(fresh.firstPassword);
    await other.getByLabel('New password').fill('short');
    await other.getByLabel('Again').fill('different');
    await other.getByRole('button', { name: 'Change and go on' }).click();
    await expect(other.getByText('It has fewer than 10 characters.')).toBeVisible();
    expect(await findings(other)).toEqual([]);
    await other.getByLabel('New password').fill(PASSWORD);
    await other.getByLabel('Again').fill(PASSWORD);
    await other.getByRole('button', { name: 'Change and go on' }).click();
    await expect(other.getByRole('heading', { name: 'Three things to try' })).toBeVisible();
    expect(await findings(other)).toEqual([]);
    await other.goto('/jobs');
    await expect(other.getByText('No job yet')).toBeVisible();
    await other.goto('/welcome');
    await other.getByRole('button', { name: 'Start the training' }).click();
    await expect(other).toHaveURL(/\/jobs\/\d+$/);
  } finally {
    await other.close();
    await fresh.stop();
  }
  await page.close();
});

for (const theme of THEMES) {
  test(`the door is open to everybody, in ${theme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: theme });
    await page.goto('/');
    await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
    expect(await findings(page)).toEqual([]);
  });
}
