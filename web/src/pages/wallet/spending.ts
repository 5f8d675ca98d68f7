/** Money over time by project, out of a statement: pure. */
import type { Schemas } from '../../api/types';

export type StatementLine = Schemas['StatementLine'];

/** Neither spent nor refunded: what administrators give and take. */
const GIFTS: ReadonlySet<string> = new Set(['grant', 'withdraw']);
/** More projects than this are shown as one. */
export const PROJECTS_MAX = 6;

/** A job's project by its name: what stands before a slash, else the name without its last number. */
export function projectOf(name: string | null | undefined): string {
  const said = (name ?? '').trim();
  const slash = said.indexOf('/');
  if (slash > 0) return said.slice(0, slash);
  return said.replace(/[-_.# ]*\d+$/, '') || said;
}

export interface Spent {
  job: number;
  /** When it was first paid for. */
  at: number;
  /** What it cost in all, refunds taken off. */
  net: number;
}

/** What each job cost in the end. A refund belongs to the day of the payment, not to its own. */
export function spentByJob(lines: readonly StatementLine[]): Spent[] {
  const jobs = new Map<number, Spent>();
  for (const line of lines) {
    if (line.job === null || line.job === undefined || GIFTS.has(line.reason)) continue;
    const at = Date.parse(line.at);
    const known = jobs.get(line.job) ?? { job: line.job, at, net: 0 };
    jobs.set(line.job, { job: line.job, at: Math.min(known.at, at), net: known.net - Number(line.amount) });
  }
  return [...jobs.values()].map((spent) => ({ ...spent, net: Math.round(spent.net * 1e6) / 1e6 }));
}

export interface Spending {
  /** Starts of days in the reader's zone, oldest first. */
  days: number[];
  /** The dearest first; the last one is all the others where there are too many. */
  projects: { name: string; total: number; perDay: number[] }[];
}

/** Spending of the last so many days, the dearest projects first. `rest` names all others. */
export function spending(spent: readonly Spent[], nameOf: (job: number) => string | null | undefined, now: number, count: number, words: { rest: string; unnamed: string }): Spending {
  const days = lastDays(now, count);
  const first = days[0] ?? now;
  const byProject = new Map<string, number[]>();
  for (const { job, at, net } of spent) {
    if (at < first) continue;
    const day = days.findLastIndex((start) => start <= at);
    const project = projectOf(nameOf(job)) || words.unnamed;
    const perDay = byProject.get(project) ?? days.map(() => 0);
    perDay[day] = (perDay[day] ?? 0) + net;
    byProject.set(project, perDay);
  }
  const total = (perDay: number[]) => perDay.reduce((sum, amount) => sum + amount, 0);
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
