import { expect, it } from 'vitest';
import type { JobSummary } from '../../api/types';
import { merged } from './rows';

const job = (id: number, state = 'running') => ({ id, state }) as JobSummary;
const all = () => true;

it('what changed takes the place of what was, and what is new comes first', () => {
  const rows = merged([job(3), job(1)], [job(1, 'failed'), job(4), job(2)], all);
  expect(rows.map(({ id, state }) => `${id}${state[0]}`)).toEqual(['4r', '3r', '2r', '1f']);
});

it('what no longer belongs is gone', () => {
  const running = (one: JobSummary) => one.state === 'running';
  expect(merged([job(3), job(1)], [job(3, 'failed'), job(9, 'failed')], running).map(({ id }) => id)).toEqual([1]);
});
