import { expect, it } from 'vitest';
import { entry, stepped } from './heat-map';

/** A calendar at 3 o'clock of its first day, with a gap on its second. */
const cells = [[0, 3], [0, 4], [1, 0], [1, 2], [1, 3], [2, 0]].map(([row = 0, column = 0]) => ({ row, column }));
const places = new Map(cells.map((cell) => [`${cell.row}:${cell.column}`, cell]));

it('Tab enters at the first cell there is, and later where the keyboard was', () => {
  expect(entry(cells, [0, 0])).toEqual([0, 3]);
  expect(entry(cells, [1, 2])).toEqual([1, 2]);
  expect(entry([], [0, 0])).toEqual([0, 0]);
});

it('arrows go over gaps, beside them where the column has none, and stay at the edge', () => {
  const go = (from: [number, number], by: [number, number]) => stepped(places, from, by, [3, 5]);
  expect(go([0, 3], [0, 1])).toEqual([0, 4]);
  expect(go([0, 4], [0, 1])).toEqual([0, 4]);
  expect(go([0, 3], [0, -1])).toEqual([0, 3]);
  expect(go([1, 2], [0, -1])).toEqual([1, 0]);
  expect(go([0, 4], [1, 0])).toEqual([1, 3]);
  expect(go([1, 0], [-1, 0])).toEqual([0, 3]);
  expect(go([1, 3], [1, 0])).toEqual([2, 0]);
});
