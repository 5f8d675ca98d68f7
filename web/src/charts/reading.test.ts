import { expect, it } from 'vitest';
import { isDense, readingAt, stays, zoomed } from './reading';

const lines = [{ name: 'loss', values: [1, null, 0.25] }, { name: 'accuracy', values: [null, null, 0.9] }];

it('a place says every value that there is, and that there is none', () => {
  expect(readingAt('Step 3', lines, 2, String, 'nothing')).toBe('Step 3: loss 0.25, accuracy 0.9');
  expect(readingAt('Step 1', lines, 0, String, 'nothing')).toBe('Step 1: loss 1');
  expect(readingAt('Step 2', lines, 1, String, 'nothing')).toBe('Step 2: nothing');
});

it('values that come every few seconds are dense, also with a pause between them; hours are not', () => {
  expect(isDense([0, 5, 10, 15])).toBe(true);
  expect(isDense([0, 5, 10, 86_400, 86_405])).toBe(true);
  expect(isDense([0, 3600, 7200, 7210])).toBe(false);
  expect(isDense([0, 60, 120])).toBe(false);
  // Of one alone nothing is known: its time is told in full.
  expect(isDense([7])).toBe(true);
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

it('what was zoomed to stays when values are added, and not when others are asked for', () => {
  const before = [10, 20, 30, 40];
  expect(stays(before, [10, 20, 30, 40, 50], 20, 30)).toBe(true);
  expect(stays(before, [20, 30, 40, 50], 25, 30)).toBe(true);
  // All of it was shown: all of it is shown.
  expect(stays(before, [10, 20, 30, 40, 50], 10, 40)).toBe(false);
  expect(stays(before, [0, 10, 20, 30, 40], 20, 30)).toBe(false);
  expect(stays(before, [50, 60], 20, 30)).toBe(false);
  expect(stays([], [1, 2], 0, 1)).toBe(false);
});
