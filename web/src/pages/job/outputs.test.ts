import { expect, it } from 'vitest';
import { inFolder, outputAddress } from './outputs';

const file = (path: string, bytes = 1, changed = '2026-01-01') => ({ path, bytes, changed });

it('a folder shows its folders first, with all that is in them', () => {
  const files = [file('z.txt', 5), file('runs/a/1', 2, '2026-03-01'), file('runs/b', 3), file('runs', 9)];
  expect(inFolder(files, '').map(({ name, folder, bytes }) => `${name}${folder ? '/' : ''} ${bytes}`)).toEqual(['runs/ 5', 'runs 9', 'z.txt 5']);
  expect(inFolder(files, 'runs/').map(({ name }) => name)).toEqual(['a', 'b']);
  expect(inFolder(files, '')[0]?.changed).toBe('2026-03-01');
});

it('an address keeps what a name has', () => {
  expect(outputAddress(7, 'a b/%#?.txt')).toBe('/api/v1/jobs/7/outputs/a%20b/%25%23%3F.txt');
});
