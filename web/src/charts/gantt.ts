/** A Gantt chart's arithmetic: which part of time is seen, and which bars lie in it. Pure. */
export interface GanttBar {
  /** The index of its row. */
  row: number;
  /** In milliseconds. */
  from: number;
  to: number;
  /** A token that colours it, such as `--promise`. */
  token: `--${string}`;
  /** Written into it where there is room, and told when pointed at. */
  name: string;
  /** Which part of the row's height it has, from 0 to 1: lanes of GPUs. All of it where absent. */
  band?: [number, number];
  /** Drawn with stripes: not firm, such as a hold or maintenance. */
  striped?: boolean;
  /** Framed in the colour of words: under way, rather than to come. */
  outlined?: boolean;
  /** Its edge is broken: it may be gone soon. */
  dashed?: boolean;
  /** What kind of thing it is; the chart's owner has the word for it. */
  kind?: string;
  id?: number | undefined;
}

export interface View {
  from: number;
  to: number;
}

export interface Limits extends View {
  /** The shortest stretch that is shown. */
  least: number;
}

/** The view moved by a part of its own length, kept within the limits. */
export function pan(view: View, part: number, limits: Limits): View {
  return shift(view, (view.to - view.from) * part, limits);
}

export function shift(view: View, by: number, limits: Limits): View {
  const length = view.to - view.from;
  const from = Math.max(limits.from, Math.min(limits.to - length, view.from + by));
  return { from, to: from + length };
}

/** The view made `factor` times as long around a moment that stays where it is. */
export function zoom(view: View, at: number, factor: number, limits: Limits): View {
  const length = view.to - view.from;
  const next = Math.max(limits.least, Math.min(limits.to - limits.from, length * factor));
  const share = length === 0 ? 0.5 : (at - view.from) / length;
  return shift({ from: at - share * next, to: at + (1 - share) * next }, 0, limits);
}

/** Bars by row, each row in order of time, so that what is seen is found without looking at all. */
export class BarIndex {
  private rows: GanttBar[][] = [];
  /** The longest bar of each row: how far left of the view one may begin that reaches into it. */
  private longest: number[] = [];

  constructor(bars: readonly GanttBar[]) {
    for (const bar of bars) (this.rows[bar.row] ??= []).push(bar);
    for (const [row, list] of this.rows.entries()) {
      if (!list) continue;
      list.sort((a, b) => a.from - b.from);
      this.longest[row] = Math.max(...list.map((bar) => bar.to - bar.from));
    }
  }

  /** Those of a row that lie in the view, in part or wholly. */
  seen(row: number, view: View): GanttBar[] {
    const list = this.rows[row];
    if (!list) return [];
    const found: GanttBar[] = [];
    for (let at = this.first(list, view.from - (this.longest[row] ?? 0)); at < list.length; at += 1) {
      const bar = list[at];
      if (!bar || bar.from >= view.to) break;
      if (bar.to > view.from) found.push(bar);
    }
    return found;
  }

  /** The bar of a row that follows another in time or comes before it; the first at a moment where there is none. */
  step(row: number, from: GanttBar | undefined, way: 1 | -1, at: number): GanttBar | undefined {
    const list = this.rows[row];
    if (!list || list.length === 0) return undefined;
    if (!from) return list.find((bar) => bar.to > at) ?? list.at(-1);
    // By what it says: the same bar may have been made anew since.
    const here = list.findIndex((bar) => bar === from || (bar.from === from.from && bar.name === from.name && bar.band?.[0] === from.band?.[0]));
    return here < 0 ? list.find((bar) => bar.to > at) : (list[here + way] ?? list[here]);
  }

  /** The first that begins at or after a moment. */
  private first(list: readonly GanttBar[], at: number): number {
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((list[middle]?.from ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** About how wide a letter of a bar's name is, in pixels; ideographs are wider. Measuring every name would stutter. */
const LETTER = 6.2;
const IDEOGRAPH = 11.5;

/** A name that fits into so many pixels, with a sign where it was cut; nothing where hardly a letter would be left. */
export function shortened(name: string, room: number): string {
  let left = room;
  for (const [at, letter] of [...name].entries()) {
    left -= letter > '\u2e7f' ? IDEOGRAPH : LETTER;
    if (left < 0) return at < 4 ? '' : `${[...name].slice(0, at - 1).join('')}…`;
  }
  return name;
}
