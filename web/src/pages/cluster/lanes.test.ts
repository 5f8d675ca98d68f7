import { describe, expect, it } from 'vitest';
import type { Booking } from '../../api/types';
import { BarCache, barsOf, packed, runs } from './lanes';

const booking = (gpus: number[], from: number, to: number, kind = 'promise'): Booking => ({
  job: 1, from: new Date(from * 1000).toISOString(), to: new Date(to * 1000).toISOString(), cpu_milli: 1000, memory_mib: 1, gpus, kind,
});

describe('lanes', () => {
  it('join GPUs that are neighbours', () => {
    expect(runs([4, 0, 1])).toEqual([[0, 2], [4, 5]]);
    expect(runs([])).toEqual([]);
  });

  it('never put two that overlap into one lane, and use no more lanes than overlap at once', () => {
    const stretches = Array.from({ length: 60 }, (_, index) => ({ from: (index * 7) % 50, to: ((index * 7) % 50) + 1 + ((index * 5) % 9) }));
    const { lanes, count } = packed(stretches);
    for (const [a, one] of stretches.entries()) {
      for (const [b, other] of stretches.entries()) {
        if (a < b && one.from < other.to && other.from < one.to) expect(lanes[a]).not.toBe(lanes[b]);
      }
    }
    const most = Math.max(...Array.from({ length: 70 }, (_, at) => stretches.filter(({ from, to }) => from <= at && at < to).length));
    expect(count).toBe(most);
  });
});

describe('bars of a node', () => {
  it('lie in the lanes of their GPUs, and maintenance over all of them', () => {
    const bars = barsOf([booking([0, 1], 0, 10), booking([3], 0, 10, 'running'), booking([], 20, 30, 'maintenance')], 5, 4, () => 'x');
    expect(bars.map(({ band, token }) => [band, token])).toEqual([[[0, 0.5], '--promise'], [[0.75, 1], '--accent'], [undefined, '--quiet']]);
    expect(bars.every(({ row }) => row === 5)).toBe(true);
    expect(bars.at(-1)?.striped).toBe(true);
  });

  it('of every kind differ by more than their colour', () => {
    const kinds = ['promise', 'running', 'hold', 'maintenance'];
    const bars = kinds.map((kind) => barsOf([booking([0], 0, 10, kind)], 0, 1, () => 'x')[0]);
    expect(bars.map((bar) => bar?.kind)).toEqual(kinds);
    expect(new Set(bars.map((bar) => `${bar?.striped} ${bar?.outlined} ${bar?.dashed}`)).size).toBe(kinds.length);
  });

  it('of work without a GPU get a strip below, and the whole row of a node without any', () => {
    const mixed = barsOf([booking([0], 0, 10), booking([], 0, 10)], 0, 1, () => 'x');
    expect(mixed.map(({ band }) => band)).toEqual([[0, 0.85], [0.85, 1]]);
    const plain = barsOf([booking([], 0, 10), booking([], 5, 15)], 0, 0, () => 'x');
    expect(plain.map(({ band }) => band)).toEqual([[0, 0.5], [0.5, 1]]);
  });
});

it('bars are made again only where the answer, the row or the names are others', () => {
  const cache = new BarCache();
  const [answer, names] = [[booking([0], 0, 10)], {}];
  const first = cache.of(answer, 0, 1, () => 'a', names);
  expect(cache.of(answer, 0, 1, () => 'b', names)).toBe(first);
  expect(cache.of(answer, 0, 1, () => 'b', {})[0]?.name).toBe('b');
  expect(cache.of(answer, 3, 1, () => 'b', names)[0]?.row).toBe(3);
  expect(cache.of([...answer], 0, 1, () => 'c', names)[0]?.name).toBe('c');
});
