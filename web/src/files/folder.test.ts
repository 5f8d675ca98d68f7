import { expect, it } from 'vitest';
import { belongs, BYTES_MAX, FILES_MAX, fromList, keepable, tooMuch, type Found } from './folder';

it('what no job needs stays behind, wherever it lies', () => {
  for (const path of ['train.py', 'src/model.py', '.gitignore', 'data/target.csv']) expect(belongs(path), path).toBe(true);
  for (const path of ['.git/config', 'src/__pycache__/a.pyc', 'node_modules/x', '../up', 'a//b', '']) expect(belongs(path), path).toBe(false);
});

it('too much is said before anything is sent', () => {
  const file = (size: number) => ({ size }) as File;
  const some = (count: number, size: number): Found[] => Array.from({ length: count }, (_, index) => ({ path: String(index), file: file(size) }));
  expect(tooMuch(some(3, 10))).toBeUndefined();
  expect(tooMuch(some(FILES_MAX + 1, 0))).toBe('files');
  expect(tooMuch(some(2, BYTES_MAX))).toBe('bytes');
});

it('of data nothing is left out but what is no path', () => {
  const list = ['set/target/a.bin', 'set/.git/config', 'set/b.txt'].map((webkitRelativePath) => ({ webkitRelativePath, name: 'x' }));
  expect(fromList(list as unknown as FileList, keepable).map(({ path }) => path)).toEqual(['target/a.bin', '.git/config', 'b.txt']);
  expect(fromList(list as unknown as FileList).map(({ path }) => path)).toEqual(['b.txt']);
  for (const path of ['', 'a//b', '../a', './a', 'a/']) expect(keepable(path), path).toBe(false);
});

it('what the platform keeps for itself is never sent, wherever it stands and whatever it is called', () => {
  const list = ['set/a.py', 'set/era-data/x', 'set/deep/state/.era-folder', 'set/deep/state/jobs/1', 'set/deep/state2/b'];
  const files = list.map((webkitRelativePath) => ({ webkitRelativePath, name: webkitRelativePath.split('/').at(-1) }));
  for (const wanted of [belongs, keepable]) expect(fromList(files as unknown as FileList, wanted).map(({ path }) => path)).toEqual(['a.py', 'era-data/x', 'deep/state2/b']);
});
