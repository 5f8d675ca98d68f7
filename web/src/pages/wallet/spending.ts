/** Money over time by project, as the server tells it hour by hour: pure. */
import type { Schemas } from '../../api/types';

export type Stretch = Schemas['SpendingStretch'];

/** More projects than this are shown as one. */
export const PROJECTS_MAX = 6;

export interface Spending {
  /** Starts of days in the reader's zone, oldest first. */
  days: number[];
  /** The dearest first; the last one is all the others where there are too many. */
  projects: { name: string; total: number; perDay: number[] }[];
}

/** Spending of the last so many days, the dearest projects first. `rest` names all others, `none` jobs without one. */
export function spending(stretches: readonly Stretch[], now: number, count: number, words: { rest: string; none: string }): Spending {
  const days = lastDays(now, count);
  const byProject = new Map<string, number[]>();
  for (const { from, projects } of stretches) {
    const at = Date.parse(from);
    // The hour in which the first day begins may have begun the day before.
    const day = Math.max(0, days.findLastIndex((start) => start <= at));
    for (const { project, net } of projects) {
      const name = project ?? words.none;
      const perDay = byProject.get(name) ?? days.map(() => 0);
      perDay[day] = (perDay[day] ?? 0) + Number(net);
      byProject.set(name, perDay);
    }
  }
  const total = (perDay: number[]) => Math.round(perDay.reduce((sum, amount) => sum + amount, 0) * 1e6) / 1e6;
  const all = [...byProject].map(([name, perDay]) => ({ name, total: total(perDay), perDay })).sort((a, b) => b.total - a.total);
  if (all.length <= PROJECTS_MAX) return { days, projects: all };
  const others = all.slice(PROJECTS_MAX - 1);
  const perDay = days.map((_, day) => others.reduce((sum, project) => sum + (project.perDay[day] ?? 0), 0));
  return { days, projects: [...all.slice(0, PROJECTS_MAX - 1), { name: words.rest, total: total(perDay), perDay }] };
}

/** The starts of the last days, today's last. Days have 23 to 25 hours. */
export function lastDays(now: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => {
    const day = new Date(now);
    day.setHours(0, 0, 0, 0);
    day.setDate(day.getDate() - (count - 1 - index));
    return day.getTime();
  });
}
