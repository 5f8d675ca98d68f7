import { expect, it } from 'vitest';
import { belongs, BYTES_MAX, FILES_MAX, tooMuch, type Found } from './folder';

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
