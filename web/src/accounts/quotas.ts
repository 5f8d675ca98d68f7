/** What is used of each limit and what is left, as lines of numbers: pure. */
import type { Schemas } from '../api/types';
import { quantity } from './quantity';

export type Quota = Schemas['Quota'];
export type QuotaUse = Schemas['QuotaUse'];
export const LIMITS = ['gpu', 'cpu', 'memory', 'gpu_hours', 'cpu_hours', 'memory_hours', 'credits', 'storage_bytes'] as const;
export type Limit = (typeof LIMITS)[number];

export interface QuotaLine {
  limit: Limit;
  used: number;
  /** Absent where there is no limit. */
  most: number | undefined;
  /** What may still be used. */
  left: number | undefined;
}

function numeric(amount: string | number | null | undefined): number | undefined {
  if (amount === null || amount === undefined) return undefined;
  return typeof amount === 'number' ? amount : quantity(amount);
}

export function quotaLines(quota: Quota, used: QuotaUse): QuotaLine[] {
  return LIMITS.map((limit) => {
    const [most, now] = [numeric(quota[limit]), numeric(used[limit]) ?? 0];
    return { limit, used: now, most, left: most === undefined ? undefined : Math.max(0, most - now) };
  });
}

/** What is used, and of how much where there is a limit. */
export const of = (used: string, most: string | number | null | undefined) => (most === null || most === undefined ? used : `${used} / ${most}`);

/** Which of the limits speaks for itself: how near it is. */
export function nearness(line: QuotaLine): 'accent' | 'warn' | 'bad' {
  if (line.most === undefined) return 'accent';
  const share = line.most === 0 ? 1 : line.used / line.most;
  return share >= 1 ? 'bad' : share >= 0.8 ? 'warn' : 'accent';
}

/** A quota out of the texts of a form: what is empty is unlimited. */
export function quotaOf(texts: Readonly<Record<Limit, string>>, gib = 2 ** 30): Quota {
  const quota: Quota = {};
  for (const limit of ['cpu', 'memory', 'gpu', 'credits'] as const) {
    if (texts[limit].trim() !== '') quota[limit] = texts[limit].trim();
  }
  for (const limit of ['cpu_hours', 'memory_hours', 'gpu_hours'] as const) {
    if (texts[limit].trim() !== '') quota[limit] = Number(texts[limit]);
  }
  if (texts.storage_bytes.trim() !== '') quota.storage_bytes = Math.round(Number(texts.storage_bytes) * gib);
  return quota;
}

/** The texts of a form out of a quota. */
export function textsOf(quota: Quota, gib = 2 ** 30): Record<Limit, string> {
  const text = (limit: Limit) => {
    const amount = quota[limit];
    if (amount === null || amount === undefined) return '';
    return limit === 'storage_bytes' ? String(Number(amount) / gib) : String(amount);
  };
  return Object.fromEntries(LIMITS.map((limit) => [limit, text(limit)])) as Record<Limit, string>;
}
