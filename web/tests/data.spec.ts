/** Data sets: made, filled by an upload that is cut and goes on, browsed, previewed, shared. */
import { expect, findings, OVERLOADED, PASSWORD, test, THEMES, USER } from './harness';
import type { Server } from './harness/server';

async function asUser(server: Server): Promise<string> {
  return (await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: PASSWORD, label: 'data' })).token;
}

/** A set with a few files in it, put there by the API. */
async function filled(server: Server, name: string): Promise<void> {
  const token = await asUser(server);
  await server.ask('POST', '/data', { name }, token);
  const files: Record<string, string> = {
    'labels.csv': 'image,class\na.png,"car, parked"\nb.png,person\n',
    'meta.json': '{"classes":["car"]}',
    'train/one.txt': 'first',
    'train/deep/two.txt': 'second',
    '<img src=x onerror=alert(1)>.txt': '<script>window.intruded = true</script>',
  };
  for (const [path, body] of Object.entries(files)) {
    const address = path.split('/').map(encodeURIComponent).join('/');
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' };
    const response = await fetch(`${server.url}/api/v1/data/${USER}/${name}/files/${address}`, { method: 'PUT', headers, body });
    expect(response.status, path).toBe(200);
  }
}

test('a new data set is made, takes files, and shows them', async ({ page }) => {
  await page.goto('/data');
  await page.getByRole('button', { name: 'New data set' }).first().click();
  await page.getByRole('textbox', { name: 'Name' }).fill('no spaces please');
  await page.getByRole('button', { name: 'Make it' }).click();
  await expect(page.getByRole('alert')).toContainText('is no name for a data set');
  await page.getByRole('textbox', { name: 'Name' }).fill('street-scenes');
  await page.getByRole('button', { name: 'Make it' }).click();
  await expect(page.getByRole('heading', { name: 'street-scenes' })).toBeVisible();
  await expect(page.getByText('No files yet')).toBeVisible();
  await page.locator('input[data-pick=files]').setInputFiles([
    { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('hello') },
    { name: 'empty.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(0) },
  ]);
  await expect(page.getByRole('button', { name: 'notes.txt', exact: true })).toBeVisible();
  await expect(page.getByRole('button', { name: 'empty.bin', exact: true })).toBeVisible();
  await expect(page.getByText('Uploaded', { exact: true })).toBeVisible();
  await expect(page.getByText(/^2 files/)).toBeVisible();
});

test('what somebody else puts there appears by itself', async ({ page, server }) => {
  const token = await asUser(server);
  await page.goto('/data?search=by-itself');
  await expect(page.getByRole('link', { name: 'by-itself' })).toBeHidden();
  await server.ask('POST', '/data', { name: 'by-itself' }, token);
  await page.getByRole('link', { name: 'by-itself' }).click();
  await expect(page.getByText('No files yet')).toBeVisible();
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' };
  await fetch(`${server.url}/api/v1/data/${USER}/by-itself/files/late.txt`, { method: 'PUT', headers, body: 'late' });
  await expect(page.getByRole('button', { name: 'late.txt', exact: true })).toBeVisible();
});

test('an upload that is cut pauses, goes on where it stopped and arrives whole', async ({ page, server }) => {
  const token = await asUser(server);
  await server.ask('POST', '/data', { name: 'large' }, token);
  await page.goto(`/data/${USER}/large`);
  await expect(page.getByText('No files yet')).toBeVisible();

  const size = 9 * 1024 * 1024;
  const content = Buffer.alloc(size, 'era');
  const starts: number[] = [];
  let cutting = true;
  await page.route('**/api/v1/blobs/*', async (route) => {
    const request = route.request();
    if (request.method() !== 'PUT') return route.continue();
    const from = Number(/bytes (\d+)-/.exec(request.headers()['content-range'] ?? '')?.[1]);
    starts.push(from);
    // The second piece meets a broken line for a while.
    return from > 0 && cutting ? route.abort('connectionreset') : route.continue();
  });
  await page.locator('input[data-pick=files]').setInputFiles({ name: 'big.bin', mimeType: 'application/octet-stream', buffer: content });
  await expect(page.getByText(/cut off, trying again/)).toBeVisible();
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(page.getByText('Paused', { exact: true })).toBeVisible();
  expect(await findings(page)).toEqual([]);
  cutting = false;
  await page.getByRole('button', { name: 'Go on' }).click();
  await expect(page.getByText('Uploaded', { exact: true })).toBeVisible();
  // The first piece was sent once only.
  expect(starts.filter((from) => from === 0)).toHaveLength(1);
  const response = await fetch(`${server.url}/api/v1/data/${USER}/large/files/big.bin`, { headers: { authorization: `Bearer ${token}` } });
  expect(Buffer.from(await response.arrayBuffer()).equals(content)).toBe(true);
});

test('an upload that the page was closed on is told of, and the same file again sends the rest only', async ({ page, server }) => {
  const token = await asUser(server);
  await server.ask('POST', '/data', { name: 'closed' }, token);
  await page.goto(`/data/${USER}/closed`);
  await expect(page.getByText('No files yet')).toBeVisible();
  const content = Buffer.alloc(9 * 1024 * 1024, 'closed');
  const file = { name: 'half.bin', mimeType: 'application/octet-stream', buffer: content };
  await page.route('**/api/v1/blobs/*', (route) => {
    const rest = /bytes [1-9]/.test(route.request().headers()['content-range'] ?? '');
    return rest ? route.abort('connectionreset') : route.continue();
  });
  await page.locator('input[data-pick=files]').setInputFiles(file);
  await expect(page.getByText(/cut off, trying again/)).toBeVisible();
  // How far it is is written down every other second.
  await expect.poll(() => page.evaluate(() => localStorage.getItem('era.uploads') ?? '')).toMatch(/"sent":8388608/);
  page.on('dialog', (dialog) => void dialog.accept());
  await page.reload();
  await expect(page.getByText('An upload was interrupted')).toBeVisible();
  await page.unroute('**/api/v1/blobs/*');
  const starts: string[] = [];
  page.on('request', (request) => request.method() === 'PUT' && starts.push(request.headers()['content-range'] ?? ''));
  await page.locator('input[data-pick=files]').setInputFiles(file);
  await expect(page.getByText('Uploaded', { exact: true })).toBeVisible();
  expect(starts[0]).toMatch(/^bytes 8388608-/);
  await expect(page.getByText('An upload was interrupted')).toBeHidden();
});

test('an upload beyond the storage quota is refused in a sentence, and goes in once there is room', async ({ page, server }) => {
  const token = await asUser(server);
  await server.ask('POST', '/data', { name: 'quota' }, token);
  const used = (await server.ask<{ used: { storage_bytes: number } }>('GET', `/users/${USER}`)).used.storage_bytes;
  await server.ask('PUT', `/users/${USER}/quota`, { storage_bytes: used + 1000 });
  try {
    await page.goto(`/data/${USER}/quota`);
    await page.locator('input[data-pick=files]').setInputFiles({ name: 'more.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(300_000, 'quota') });
    await expect(page.getByText('1 failed')).toBeVisible();
    await expect(page.getByText(/bytes are used, and this needs more/)).toBeVisible();
    expect(await findings(page)).toEqual([]);
  } finally {
    await server.ask('PUT', `/users/${USER}/quota`, {});
  }
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByRole('button', { name: 'more.bin', exact: true })).toBeVisible();
});

test('files that are dropped on a folder go into it', async ({ page, server }) => {
  await filled(server, 'dropped');
  await page.goto(`/data/${USER}/dropped?in=train%2F`);
  await expect(page.getByRole('button', { name: 'one.txt', exact: true })).toBeVisible();
  const transfer = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(['third'], 'three.txt', { type: 'text/plain' }));
    return data;
  });
  const list = page.getByRole('group', { name: 'Files of dropped' });
  await list.dispatchEvent('dragover', { dataTransfer: transfer });
  await expect(page.getByText('They go into train/.')).toBeVisible();
  await list.dispatchEvent('drop', { dataTransfer: transfer });
  await expect(page.getByRole('button', { name: 'three.txt', exact: true })).toBeVisible();
  const paths = await server.ask<{ items: { path: string }[] }>('GET', `/data/${USER}/dropped/files?prefix=train/`);
  expect(paths.items.map(({ path }) => path)).toContain('train/three.txt');
});

test('folders open, a search looks everywhere, and hostile names are only names', async ({ page, server }) => {
  await filled(server, 'browse');
  await page.goto(`/data/${USER}/browse`);
  await expect(page.getByRole('button', { name: '<img src=x onerror=alert(1)>.txt' })).toBeVisible();
  await page.getByRole('link', { name: 'train' }).click();
  await expect(page).toHaveURL(/in=train/);
  await expect(page.getByRole('button', { name: 'one.txt', exact: true })).toBeVisible();
  await expect(page.getByRole('link', { name: 'deep' })).toBeVisible();
  await page.goBack();
  await page.getByPlaceholder('Search in all folders').fill('two');
  await expect(page.getByRole('button', { name: 'train/deep/two.txt' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'meta.json', exact: true })).toBeHidden();
});

test('a table, JSON and text are shown as what they are, and never run', async ({ page, server }) => {
  await filled(server, 'preview');
  await page.goto(`/data/${USER}/preview`);
  await page.getByRole('button', { name: 'labels.csv', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByRole('columnheader', { name: 'class' })).toBeVisible();
  await expect(dialog.getByRole('cell', { name: 'car, parked' })).toBeVisible();
  expect(await findings(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'meta.json', exact: true }).click();
  await expect(dialog).toContainText('"classes": [');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /onerror/ }).first().click();
  await expect(dialog).toContainText('window.intruded = true');
  expect(await page.evaluate(() => 'intruded' in window)).toBe(false);
});

test('a picture is shown as one, and one that is none is said to be broken', async ({ page, server }) => {
  const token = await asUser(server);
  await server.ask('POST', '/data', { name: 'pictures' }, token);
  const pixel = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAADUlEQVR4nGP4zwAE/wEHAAH/4iOeWQAAAABJRU5ErkJggg==', 'base64');
  for (const [name, body] of [['two.png', pixel], ['none.png', Buffer.from('<script>1</script>')]] as const) {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' };
    expect((await fetch(`${server.url}/api/v1/data/${USER}/pictures/files/${name}`, { method: 'PUT', headers, body })).status).toBe(200);
  }
  await page.goto(`/data/${USER}/pictures`);
  await page.getByRole('button', { name: 'two.png', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByText(/^2 × 1/)).toBeVisible();
  expect(await dialog.getByRole('img').evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(2);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'none.png', exact: true }).click();
  await expect(dialog.getByText('This is no image that a browser can show.')).toBeVisible();
});

test('what was removed comes back by one click', async ({ page, server }) => {
  await filled(server, 'undo');
  await page.goto(`/data/${USER}/undo`);
  await page.getByRole('checkbox', { name: 'Select train' }).check();
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  await expect(page.getByRole('link', { name: 'train' })).toBeHidden();
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(page.getByRole('link', { name: 'train' })).toBeVisible();
});

test('who may see it is changed, and a stranger’s name is refused', async ({ page, server }) => {
  await filled(server, 'shared');
  await page.goto(`/data/${USER}/shared`);
  // What the server did not do is not shown as done.
  const set = `**/api/v1/data/${USER}/shared`;
  await page.route(set, (route) => (route.request().method() === 'PATCH' ? route.fulfill(OVERLOADED) : route.continue()));
  await page.getByText('Everyone', { exact: true }).click();
  await expect(page.getByRole('alert')).toContainText('busy');
  await expect(page.getByRole('radio', { name: /Only me/ })).toBeChecked();
  await page.unroute(set);
  await page.getByRole('radio', { name: /Everyone/ }).check();
  await expect(page.getByText('Who may see it is changed.')).toBeVisible();
  await page.getByPlaceholder('Account').fill('nobody');
  await page.getByRole('button', { name: 'Add' }).click();
  await expect(page.getByText('there is no account `nobody`')).toBeVisible();
  await page.getByPlaceholder('Account').fill('root');
  await page.getByRole('button', { name: 'Add' }).click();
  await expect(page.getByRole('button', { name: 'No longer share with root' })).toBeVisible();
  await page.getByRole('button', { name: 'No longer share with root' }).click();
  await expect(page.getByText('No longer shared with root.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'No longer share with root' })).toBeHidden();
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(page.getByRole('button', { name: 'No longer share with root' })).toBeVisible();
  await expect.poll(async () => (await server.ask<{ visibility: string }>('GET', `/data/${USER}/shared`)).visibility).toBe('public');
});

for (const theme of THEMES) {
  test(`has nothing for axe to find, in ${theme}`, async ({ page, server }) => {
    await filled(server, `axe-${theme}`);
    await page.emulateMedia({ colorScheme: theme });
    await page.goto('/data');
    await expect(page.getByRole('link', { name: `axe-${theme}` })).toBeVisible();
    expect(await findings(page)).toEqual([]);
    await page.getByRole('link', { name: `axe-${theme}` }).click();
    await expect(page.getByRole('button', { name: 'meta.json', exact: true })).toBeVisible();
    expect(await findings(page)).toEqual([]);
  });
}

test('on a phone nothing is wider than the screen', async ({ page, server }) => {
  await filled(server, 'phone');
  await page.setViewportSize({ width: 320, height: 740 });
  for (const address of ['/data', `/data/${USER}/phone`]) {
    await page.goto(address);
    await expect(page.getByText('phone', { exact: true }).first()).toBeVisible();
    await expect(page.locator('.skeleton')).toHaveCount(0);
    expect(await page.evaluate(() => document.documentElement.scrollWidth), address).toBeLessThanOrEqual(320);
  }
});
