/** How the keyboard walks over a map of heat whose places are not all taken. Pure. */
export type Place = readonly [row: number, column: number];

/** Where Tab enters: where the keyboard was last, or the first cell there is. */
export function entry(cells: readonly { row: number; column: number }[], last: Place): Place {
  if (cells.some(({ row, column }) => row === last[0] && column === last[1])) return last;
  let first: Place | undefined;
  for (const { row, column } of cells) {
    if (!first || row < first[0] || (row === first[0] && column < first[1])) first = [row, column];
  }
  return first ?? last;
}

/** The next cell in a direction, over gaps; up and down also beside a gap; where it is if there is none. */
export function stepped(cells: ReadonlyMap<string, unknown>, from: Place, by: Place, size: Place): Place {
  for (let [row, column] = [from[0] + by[0], from[1] + by[1]]; row >= 0 && row < size[0] && column >= 0 && column < size[1]; row += by[0], column += by[1]) {
    if (cells.has(`${row}:${column}`)) return [row, column];
    if (by[0] === 0) continue;
    for (let beside = 1; beside < size[1]; beside += 1) {
      for (const near of [column + beside, column - beside]) if (cells.has(`${row}:${near}`)) return [row, near];
    }
  }
  return from;
}
