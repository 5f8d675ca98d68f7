/** What `scripts/page` does where something that it needs is missing. */
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

let place: string;
const bin = () => join(place, 'bin');

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'era-page-script-'));
  for (const folder of ['bin', 'scripts', 'web']) mkdirSync(join(place, folder));
  copyFileSync(resolve(import.meta.dirname, '../../scripts/page'), join(place, 'scripts/page'));
  writeFileSync(join(place, 'web/package-lock.json'), '{}');
  // No more of the system than it takes: above all nothing that could install the rest.
  for (const name of ['sh', 'dirname']) symlinkSync(which(name), join(bin(), name));
});
afterEach(() => rmSync(place, { recursive: true }));

function which(name: string): string {
  return spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim();
}

function page(what: string, env: Record<string, string> = {}) {
  const { status, stderr } = spawnSync('sh', [join(place, 'scripts/page'), what], { encoding: 'utf8', env: { PATH: bin(), ...env } });
  return { status, stderr };
}

it('without Node checks and tests are left out aloud, and fail where nothing may be left out', () => {
  for (const what of ['check', 'test']) {
    const here = page(what);
    expect(here.stderr).toMatch(/^page: (check|test): Node 20\.19 or later is missing/);
    expect(here.status).toBe(0);
    expect(page(what, { CI: 'true' })).toEqual({ ...here, status: 1 });
  }
  expect(page('build').status).toBe(1);
});

it('packages that cannot be installed are a failure, and not called a missing Node', () => {
  symlinkSync(process.execPath, join(bin(), 'node'));
  writeFileSync(join(bin(), 'npm'), '#!/bin/sh\necho "no network" >&2\nexit 7\n');
  chmodSync(join(bin(), 'npm'), 0o755);
  for (const what of ['check', 'test', 'build']) {
    const { status, stderr } = page(what);
    expect(status).toBe(1);
    expect(stderr).toContain('no network\npage: npm ci failed');
    expect(stderr).not.toContain('missing');
  }
});
