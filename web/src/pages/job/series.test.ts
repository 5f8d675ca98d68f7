import { describe, expect, it } from 'vitest';
import type { MetricPoint } from '../../api/types';
import { gathered, rates, seriesOf, smoothed } from './series';

const point = (name: string, step: number, value: number, rank = 0): MetricPoint => ({ name, step, value, rank, at: new Date(step * 1000).toISOString() });

describe('recorded values', () => {
  it('that come twice count once, and later ones count', () => {
    const all = gathered([point('loss', 2, 5), point('loss', 1, 9), point('loss', 2, 4), point('acc', 1, 1)]);
    expect([...all.keys()]).toEqual(['acc', 'loss']);
    expect(all.get('loss')?.get(0)?.map(({ step, value }) => [step, value])).toEqual([[1, 9], [2, 4]]);
  });

  it('of several replicas share an axis, with gaps', () => {
    const all = gathered([point('loss', 1, 9), point('loss', 3, 7), point('loss', 2, 8, 1)]);
    const series = seriesOf('loss', all.get('loss') ?? new Map(), 'step');
    expect(series.x).toEqual([1, 2, 3]);
    expect(series.lines).toEqual([{ rank: 0, values: [9, null, 7] }, { rank: 1, values: [null, 8, null] }]);
  });

  it('that count up become rates, also across a restart', () => {
    const all = gathered([point('n', 0, 100), point('n', 10, 300), point('n', 20, 50), point('n', 30, 150)]);
    expect(rates(seriesOf('n', all.get('n') ?? new Map(), 'time')).lines[0]?.values).toEqual([null, 20, null, 10]);
  });

  it('are smoothed over gaps', () => {
    expect(smoothed([1, null, 3], 0.5)).toEqual([1, null, 2]);
    expect(smoothed([1, 2, 3], 0)).toEqual([1, 2, 3]);
  });
});
