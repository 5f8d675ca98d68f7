/** What a table shows, and the arithmetic of which rows are seen: pure, so that it can be tested. */
export interface Column<T> {
  id: string;
  label: string;
  /** Its label is read aloud only, as over buttons that speak for themselves. */
  unlabelled?: boolean;
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

/**
 * Which of the rows that exist shows which row: what is seen again stays where it is, with its focus
 * and its open menu, and what comes into sight takes the place of what left it.
 */
export function placed<K>(keys: readonly K[], before: ReadonlyMap<K, number>): { places: number[]; kept: Map<K, number> } {
  const wanted = new Set(keys);
  const kept = new Map<K, number>();
  for (const [key, place] of before) if (wanted.has(key)) kept.set(key, place);
  const taken = new Set(kept.values());
  const free = [...before.values()].filter((place) => !taken.has(place));
  let next = Math.max(-1, ...before.values()) + 1;
  const used = new Set<number>();
  const places = keys.map((key) => {
    let place = kept.get(key);
    // A key that comes twice is no key: the second gets a place of its own.
    if (place === undefined || used.has(place)) {
      place = free.shift() ?? next++;
      if (!kept.has(key)) kept.set(key, place);
    }
    used.add(place);
    return place;
  });
  return { places, kept };
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
