/** What a chart of lines says at one place, for those who read it by keyboard or by ear. Pure. */
export interface Read {
  name: string;
  values: readonly (number | null)[];
}

/** Where it is, and each line's value there; lines without one are left out, unless none has any. */
export function readingAt(where: string, lines: readonly Read[], at: number, format: (value: number) => string, nothing: string): string {
  const said = lines.flatMap(({ name, values }) => {
    const value = values[at];
    return value === null || value === undefined ? [] : [`${name} ${format(value)}`];
  });
  return `${where}: ${said.length > 0 ? said.join(', ') : nothing}`;
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
