import { expect, it } from 'vitest';
import { stacked } from './stack';

it('stacked lines end at the sum of all, and a gap counts as nothing', () => {
  expect(stacked([[1, 2, null], [3, null, 4]])).toEqual([[1, 2, 0], [4, 2, 4]]);
  expect(stacked([])).toEqual([]);
});
