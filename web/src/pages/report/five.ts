/** The five measures as pairs, and which of two is better: pure. */
import type { Schemas } from '../../api/types';

export type Measures = Omit<Schemas['Measures'], 'unit_cost_by_model'>;
/** What a replay says beside what happened. */
export type Beside = { replayed?: Measures | null; without?: Measures | null; ratio?: Schemas['Ratios'] | null; withheld?: Schemas['Report']['withheld'] };
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
  /** Whether the server tells no ratio, since the replay does not reproduce what happened. */
  withheld: boolean;
}

/** What the server calls them. */
const KEYS = { startUp: 'start_up', startFirst: 'start_first', runSuccess: 'run_success', utilisation: 'utilisation', unitCost: 'unit_cost' } as const satisfies Record<Measure, keyof Schemas['Ratios']>;

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
export function pairs(withEra: Measures, beside: Beside | undefined): Pair[] {
  return FIVE.map((measure) => {
    const ratio = beside?.ratio?.[KEYS[measure]] ?? undefined;
    const withheld = beside?.withheld?.includes(KEYS[measure]) ?? false;
    return { measure, with: valueOf(measure, withEra), replayed: valueOf(measure, beside?.replayed), without: valueOf(measure, beside?.without), ratio, verdict: verdictOf(measure, ratio), withheld };
  });
}

/** From here on a difference is told as a multiple, below as a share. */
const MULTIPLE = 2;

/** How one value differs from another, given their ratio: 0.02 is 50 times less, 0.8 is 20 % less. */
export function differenceOf(ratio: number): { times?: number; share?: number; less: boolean } {
  const less = ratio < 1;
  const times = less ? 1 / ratio : ratio;
  return times >= MULTIPLE && Number.isFinite(times) ? { times, less } : { share: Math.abs(ratio - 1), less };
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
