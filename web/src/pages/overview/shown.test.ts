import { describe, expect, test } from 'vitest';
import type { JobSummary } from '../../api';
import { counted, shown } from './shown';

const job = (id: number, state: string, promised_start?: string) => ({ id, state, promised_start }) as JobSummary;
const ids = (jobs: JobSummary[]) => jobs.map(({ id }) => id);

describe('the jobs of the overview', () => {
  test('are counted by the server, and more than it counts are said to be more', () => {
    const counts = { running: 3, starting: 1, waiting: 1250 };
    expect(counted({ counts }, ['running', 'starting', 'stopping'], String)).toBe('4');
    expect(counted({ counts }, Object.keys(counts), String)).toBe('1254');
    expect(counted({ counts, at_least: ['waiting'] }, ['waiting'], String)).toBe('1250+');
    expect(counted({ counts, at_least: ['waiting'] }, ['running'], String)).toBe('3');
  });

  test('run, are promised by their start, and wait', () => {
    const later = job(1, 'promised', '2026-11-18T00:00:00Z');
    const sooner = job(2, 'promised', '2026-11-17T00:00:00Z');
    expect(ids(shown([job(3, 'waiting'), later, job(4, 'running'), sooner, job(5, 'starting')], 12))).toEqual([5, 4, 2, 1, 3]);
  });

  test('are some of each where there are too many', () => {
    const many = Array.from({ length: 20 }, (_, index) => job(index, 'promised', `2026-11-17T00:00:${10 + index}Z`));
    const found = shown([...many, job(90, 'waiting'), job(91, 'waiting'), job(99, 'running')], 12);
    expect(ids(found)).toEqual([99, 0, 1, 2, 3, 4, 5, 6, 7, 8, 91, 90]);
    expect(shown(many, 12)).toHaveLength(12);
  });
});
