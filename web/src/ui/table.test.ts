import { describe, expect, it } from 'vitest';
import { placed, seenRows, sorted, type Column } from './table';

describe('a virtual table', () => {
  it('draws what is seen and a little more, whatever the number of rows', () => {
    expect(seenRows(0, 400, 40, 100_000)).toEqual([0, 18]);
    expect(seenRows(40 * 50_000, 400, 40, 100_000)).toEqual([49_992, 50_018]);
    expect(seenRows(40 * 99_990, 400, 40, 100_000)).toEqual([99_982, 100_000]);
  });

  it('draws nothing out of nothing, also when it was scrolled', () => {
    expect(seenRows(0, 400, 40, 0)).toEqual([0, 0]);
    expect(seenRows(9_000, 400, 40, 3)).toEqual([0, 3]);
  });

  it('leaves equal rows as they were', () => {
    const columns: Column<[string, number]>[] = [{ id: 'n', label: 'n', width: '1fr', sort: (row) => row[1] }];
    const rows: [string, number][] = [['a', 2], ['b', 1], ['c', 2], ['d', 1]];
    const names = (down: boolean) => sorted(rows, columns, { column: 'n', down }).map(([name]) => name).join('');
    expect(names(false)).toBe('bdac');
    expect(names(true)).toBe('acbd');
    expect(sorted(rows, columns, undefined)).toBe(rows);
    expect(sorted(rows, columns, { column: 'gone', down: true })).toBe(rows);
  });

  it('keeps each row where it is while it is seen, and gives what comes the place of what left', () => {
    const first = placed([1, 2, 3], new Map());
    expect(first.places).toEqual([0, 1, 2]);
    // Scrolled by one, pushed aside by one, one that goes, and one more than before.
    expect(placed([2, 3, 4], first.kept).places).toEqual([1, 2, 0]);
    expect(placed([9, 1, 2], first.kept).places).toEqual([2, 0, 1]);
    expect(placed([1, 3], first.kept).places).toEqual([0, 2]);
    expect(placed([1, 2, 3, 4], first.kept).places).toEqual([0, 1, 2, 3]);
    expect(new Set(placed([5, 5, 6], first.kept).places).size).toBe(3);
  });
});
