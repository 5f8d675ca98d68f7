/** What a table shows, and the arithmetic of which rows are seen: pure, so that it can be tested. */
export interface Column<T> {
  id: string;
  label: string;
  /** A track of a CSS grid: `6rem`, `minmax(8rem, 2fr)`. */
  width: string;
  align?: 'end';
  /** Shown only where the table is at least so many pixels wide. */
  from?: number;
  /** What it is sorted by; absent where it cannot be. */
  sort?: (row: T) => string | number;
  /** What is shown; absent where the table's `cell` snippet shows it. */
  text?: (row: T) => string;
}

export interface Sorting {
  column: string;
  down: boolean;
}

/** Rows `[first, last)` that a scrolled table draws, a few more than are seen. */
export function seenRows(top: number, height: number, rowHeight: number, count: number, spare = 8): [number, number] {
  const first = Math.max(0, Math.min(count, Math.floor(top / rowHeight)) - spare);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + spare);
  return [first, Math.max(first, last)];
}

/** The rows in order. Equal ones stay as they were, so that a table does not jump. */
export function sorted<T>(rows: readonly T[], columns: readonly Column<T>[], by: Sorting | undefined): readonly T[] {
  const key = columns.find((column) => column.id === by?.column)?.sort;
  if (!by || !key) return rows;
  // Keys once a row, not once a comparison.
  const keyed = rows.map((row, index) => ({ row, index, key: key(row) }));
  const sign = by.down ? -1 : 1;
  keyed.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : a.index - b.index));
  return keyed.map(({ row }) => row);
}
