import { describe, expect, it } from 'vitest';
import { crumbs, listFolder, type Listed } from './listing';

/** A server with pages of so many, in order of bytes, that counts its questions. */
function server(paths: string[], prefix: string, size: number) {
  const all = paths.filter((path) => path.startsWith(prefix)).sort().map((path): Listed => ({ path, bytes: 10 }));
  const asked: (string | undefined)[] = [];
  const load = async (cursor: string | undefined) => {
    asked.push(cursor);
    const items = all.filter(({ path }) => cursor === undefined || path > cursor).slice(0, size);
    return { items, next: items.length === size ? items.at(-1)?.path : undefined };
  };
  return { load, asked };
}

describe('a folder', () => {
  const paths = ['README.md', 'a/1', 'a/2', 'a/b/3', 'z.txt', 'train/x/1', 'train0', ...Array.from({ length: 50 }, (_, at) => `train/${String(at).padStart(3, '0')}`)];

  it('has the same lines whatever the size of a page', async () => {
    for (const size of [1, 2, 3, 7, 1000]) {
      const { load } = server(paths, '', size);
      const found = await listFolder(load, '');
      expect(found.folders.map(({ name }) => name).sort(), `pages of ${size}`).toEqual(['a', 'train']);
      expect(found.files.map(({ path }) => path).sort()).toEqual(['README.md', 'train0', 'z.txt']);
      expect(found.more).toBe(false);
    }
  });

  it('counts what it saw all of, and no more', async () => {
    const whole = await listFolder(server(paths, '', 1000).load, '');
    expect(whole.folders.find(({ name }) => name === 'train')).toEqual({ name: 'train', files: 51, bytes: 510 });
    const part = await listFolder(server(paths, '', 8).load, '');
    expect(part.folders.find(({ name }) => name === 'train')?.files).toBeUndefined();
  });

  it('skips what is deeper instead of reading it', async () => {
    const { load, asked } = server(Array.from({ length: 3000 }, (_, at) => `big/${String(at).padStart(5, '0')}`).concat('end'), '', 100);
    expect((await listFolder(load, '')).files.map(({ path }) => path)).toEqual(['end']);
    expect(asked).toHaveLength(2);
  });

  it('is a part of a greater one by its prefix', async () => {
    const found = await listFolder(server(paths, 'a/', 2).load, 'a/');
    expect(found.files.map(({ path }) => path)).toEqual(['a/1', 'a/2']);
    expect(found.folders.map(({ name }) => name)).toEqual(['b']);
  });
});

it('the way to a folder is its parts', () => {
  expect(crumbs('')).toEqual([]);
  expect(crumbs('a/b/')).toEqual([{ name: 'a', prefix: 'a/' }, { name: 'b', prefix: 'a/b/' }]);
});
