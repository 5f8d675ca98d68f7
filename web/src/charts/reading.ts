/** What a chart of lines says at one place, for those who read it by keyboard or by ear. Pure. */
export interface Read {
  name: string;
  values: readonly (number | null)[];
}

/** Whether minutes would not tell values from each other: most stand less than one apart, or there is but one. */
export function isDense(seconds: readonly number[]): boolean {
  const close = seconds.filter((at, index) => index > 0 && at - (seconds[index - 1] ?? at) < 60).length;
  return seconds.length < 2 || close * 2 > seconds.length - 1;
}

/** Where it is, and each line's value there; lines without one are left out, unless none has any. */
export function readingAt(where: string, lines: readonly Read[], at: number, format: (value: number) => string, nothing: string): string {
  const said = lines.flatMap(({ name, values }) => {
    const value = values[at];
    return value === null || value === undefined ? [] : [`${name} ${format(value)}`];
  });
  return `${where}: ${said.length > 0 ? said.join(', ') : nothing}`;
}

/**
 * Whether the stretch that is shown stays when new values come: the reader has chosen it, and it is
 * still there. Where the values now begin earlier, more was asked for.
 */
export function stays(before: ArrayLike<number>, next: ArrayLike<number>, from: number, to: number): boolean {
  const [first, last, newFirst, newLast] = [before[0], before[before.length - 1], next[0], next[next.length - 1]];
  if (first === undefined || last === undefined || newFirst === undefined || newLast === undefined) return false;
  const chosen = from > first || to < last;
  return chosen && newFirst >= first && to > newFirst && from < newLast;
}

/** A stretch of the axis around a place, so many times as long, within all there is. */
export function zoomed(x: readonly number[], from: number, to: number, at: number, factor: number): [number, number] {
  const [first, last] = [x[0] ?? 0, x.at(-1) ?? 1];
  const all = Math.max(last - first, 1e-9);
  const length = Math.min(all, Math.max(all / 500, (to - from) * factor));
  const share = to > from ? Math.max(0, Math.min(1, (at - from) / (to - from))) : 0.5;
  const begin = Math.max(first, Math.min(last - length, at - share * length));
  return [begin, begin + length];
}
