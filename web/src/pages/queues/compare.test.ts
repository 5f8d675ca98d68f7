import { describe, expect, it } from 'vitest';
import { compared, reordered, written } from './compare';

describe('two formulas', () => {
  it('show what went and what came, and nothing is lost of either', () => {
    const [before, after] = ['10 * user_level + wait / 60', '20 * user_level + wait / 60 - debt'];
    const pieces = compared(before, after);
    expect(pieces.filter(({ kind }) => kind !== 'new').map(({ text }) => text).join('')).toBe(before);
    expect(pieces.filter(({ kind }) => kind !== 'gone').map(({ text }) => text).join('')).toBe(after);
    expect(pieces.filter(({ kind }) => kind === 'gone')).toEqual([{ kind: 'gone', text: '10' }]);
    expect(pieces.at(-1)).toEqual({ kind: 'new', text: ' - debt' });
  });
  it('that are the same are one piece', () => {
    expect(compared('wait', 'wait')).toEqual([{ kind: 'same', text: 'wait' }]);
    expect(compared('', '')).toEqual([]);
  });
  it('of any length are compared, long ones as a whole', () => {
    const long = Array.from({ length: 700 }, (_, index) => index).join('+');
    expect(compared(long, 'wait')).toHaveLength(2);
  });
});

it('a queue tells what each job gains', () => {
  expect(reordered([1, 2, 3], [3, 1, 4, 2])).toEqual([
    { job: 3, place: 1, gains: 2 },
    { job: 1, place: 2, gains: -1 },
    { job: 4, place: 3, gains: undefined },
    { job: 2, place: 4, gains: -2 },
  ]);
});

it('rules are written on one line', () => {
  expect(written({ order: 'priority', formula: 'wait' })).toBe('priority: wait');
  expect(written({ order: 'las', limits: [1, 2] })).toBe('las: 1 2');
  expect(written({ order: 'fifo' })).toBe('fifo');
});
