import { expect, it } from 'vitest';
import type { JobSummary } from '../../api/types';
import { merged } from './rows';

const job = (id: number, state = 'running') => ({ id, state }) as JobSummary;

it('what changed takes the place of what was, and what is new comes first', () => {
  const rows = merged([job(3), job(1)], [1, 4, 2], [job(1, 'failed'), job(4), job(2)]);
  expect(rows.map(({ id, state }) => `${id}${state[0]}`)).toEqual(['4r', '3r', '2r', '1f']);
});

it('what was asked for and did not come is gone, and what was not asked for stays', () => {
  expect(merged([job(3), job(2), job(1)], [3, 2, 9], [job(2)]).map(({ id }) => id)).toEqual([2, 1]);
});
