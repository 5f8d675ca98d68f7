/** The five measures as pairs, and which of two is better: pure. */
import type { Schemas } from '../../api/types';

export type Measures = Omit<Schemas['Measures'], 'unit_cost_by_model'>;
export const FIVE = ['startUp', 'startFirst', 'runSuccess', 'utilisation', 'unitCost'] as const;
export type Measure = (typeof FIVE)[number];

/** Of time and money less is better. */
const LESS: ReadonlySet<Measure> = new Set(['startUp', 'unitCost']);
/** Nearer than this is the same. */
const SAME = 0.005;

export interface Pair {
  measure: Measure;
  with: number | undefined;
  /** What a replay makes of the rules that were in force: how far it is off is the method's error. */
  replayed: number | undefined;
  without: number | undefined;
  ratio: number | undefined;
  verdict: 'better' | 'worse' | 'same' | undefined;
}

function numberOf(value: number | string | null | undefined): number | undefined {
  return value === null || value === undefined ? undefined : Number(value);
}

function valueOf(measure: Measure, of: Measures | null | undefined): number | undefined {
  if (!of) return undefined;
  const values: Record<Measure, number | string | null | undefined> = {
    startUp: of.start_up?.total_s,
    startFirst: of.start_first,
    runSuccess: of.run_success,
    utilisation: of.utilisation,
    unitCost: of.unit_cost,
  };
  return numberOf(values[measure]);
}

export function verdictOf(measure: Measure, ratio: number | undefined): Pair['verdict'] {
  if (ratio === undefined || !Number.isFinite(ratio)) return undefined;
  if (Math.abs(ratio - 1) < SAME) return 'same';
  return ratio < 1 === LESS.has(measure) ? 'better' : 'worse';
}

/** Each measure with ERA and without it, and as a replay has it with ERA. */
export function pairs(withEra: Measures, without: Measures | null | undefined, replayed: Measures | null | undefined): Pair[] {
  return FIVE.map((measure) => {
    const [ours, theirs] = [valueOf(measure, withEra), valueOf(measure, without)];
    const ratio = ours === undefined || theirs === undefined || theirs === 0 ? undefined : ours / theirs;
    return { measure, with: ours, replayed: valueOf(measure, replayed), without: theirs, ratio, verdict: verdictOf(measure, ratio) };
  });
}

export const STAGES = ['quote_s', 'accept_s', 'queue_s', 'prepare_s', 'start_s', 'total_s'] as const;
export type Stage = (typeof STAGES)[number];

/** The period of so many days until now, or between two days of the reader's calendar. */
export function periodOf(days: number, from: string | null, to: string | null, now: number): { from: Date; to: Date } | undefined {
  if (from === null && to === null) return { from: new Date(now - days * 86_400_000), to: new Date(now) };
  const [start, end] = [dayStart(from), dayStart(to)];
  if (end) end.setDate(end.getDate() + 1);
  const until = end ? new Date(Math.min(end.getTime(), now)) : new Date(now);
  const since = start ?? new Date(until.getTime() - days * 86_400_000);
  return since.getTime() < until.getTime() ? { from: since, to: until } : undefined;
}

function dayStart(text: string | null): Date | undefined {
  const read = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text ?? '');
  return read ? new Date(Number(read[1]), Number(read[2]) - 1, Number(read[3])) : undefined;
}
