import { expect, it } from 'vitest';
import { readingAt, zoomed } from './reading';

const lines = [{ name: 'loss', values: [1, null, 0.25] }, { name: 'accuracy', values: [null, null, 0.9] }];

it('a place says every value that there is, and that there is none', () => {
  expect(readingAt('Step 3', lines, 2, String, 'nothing')).toBe('Step 3: loss 0.25, accuracy 0.9');
  expect(readingAt('Step 1', lines, 0, String, 'nothing')).toBe('Step 1: loss 1');
  expect(readingAt('Step 2', lines, 1, String, 'nothing')).toBe('Step 2: nothing');
});

it('zooming keeps the place in sight and never shows more than there is', () => {
  const x = Array.from({ length: 101 }, (_, at) => at);
  expect(zoomed(x, 0, 100, 50, 0.5)).toEqual([25, 75]);
  expect(zoomed(x, 0, 100, 0, 0.5)).toEqual([0, 50]);
  expect(zoomed(x, 25, 75, 50, 4)).toEqual([0, 100]);
  expect(zoomed(x, 90, 100, 99, 2)).toEqual([80, 100]);
  const [from, to] = zoomed(x, 40, 41, 40.5, 1e-6);
  expect(to - from).toBeCloseTo(0.2);
});
