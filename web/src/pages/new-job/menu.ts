/** The flexibility menu's arithmetic: prices by deadline as a line of steps, and where a deadline lies. */
import type { MenuLine } from '../../api/types';

export interface Step {
  by: number;
  price: number;
}

const QUARTER_MS = 15 * 60_000;

export function steps(menu: readonly MenuLine[]): Step[] {
  return menu.map((line) => ({ by: Date.parse(line.by), price: Number(line.price) })).sort((a, b) => a.by - b.by);
}

/** What it costs to be finished by a moment; nothing where that is too early for any slot. */
export function priceBy(all: readonly Step[], by: number): number | undefined {
  let price: number | undefined;
  for (const step of all) if (step.by <= by) price = step.price;
  return price;
}

/** Ends of the axis: from the first deadline to a little past the last, and past what was chosen. */
export function axisEnds(all: readonly Step[], chosen: number | undefined, least: number): [number, number] {
  const first = all[0]?.by ?? 0;
  const last = Math.max(all.at(-1)?.by ?? first, chosen ?? 0, first + least);
  return [first, last + (last - first) * 0.06];
}

/** A dragged moment as a deadline: on a quarter of an hour, and not before the first possible one. */
export function snapped(all: readonly Step[], at: number): number {
  const first = all[0]?.by ?? at;
  return Math.max(Math.ceil(first / 60_000) * 60_000, Math.round(at / QUARTER_MS) * QUARTER_MS);
}
