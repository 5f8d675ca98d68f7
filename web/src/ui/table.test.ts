import { describe, expect, it } from 'vitest';
import { seenRows, sorted, type Column } from './table';

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
});
