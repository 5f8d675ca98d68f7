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
