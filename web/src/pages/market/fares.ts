/** Prices of a pool as a calendar of days and hours: pure. */
import type { PricePoint } from '../../api/types';

/** The one number by which a moment is dear or cheap: a GPU-hour, or a core-hour without GPUs. */
export function priceOf(point: Pick<PricePoint, 'gpu' | 'cpu'>): number {
  const gpu = Number(point.gpu);
  return gpu > 0 ? gpu : Number(point.cpu);
}

export function hasGpus(points: readonly PricePoint[]): boolean {
  return points.some((point) => Number(point.gpu) > 0);
}

/** In the order in which the server gives shares. */
export const RESOURCES = ['cpu', 'memory', 'gpu'] as const;
export type Resource = (typeof RESOURCES)[number];

export interface Share {
  resource: Resource;
  share: number;
}

/** What of a pool is used most, by its name: where its cores are full, that many of its GPUs are idle is no room. */
export function fullest(shares: readonly number[], gpus: boolean): Share {
  const all = RESOURCES.map((resource, at) => ({ resource, share: shares[at] ?? 0 })).filter(({ resource }) => gpus || resource !== 'gpu');
  // Of those that are as full, what prices are told of.
  const first = all.find(({ resource }) => resource === (gpus ? 'gpu' : 'cpu')) ?? { resource: 'cpu', share: 0 };
  return all.reduce((most, one) => (one.share > most.share ? one : most), first);
}

/** How long the server's stretches must be, so that none lies in two hours of the reader's clock. */
export function stepSeconds(zoneOffsetMinutes: number): number {
  const past = Math.abs(zoneOffsetMinutes) % 60;
  return past === 0 ? 3600 : past === 30 ? 1800 : 900;
}

export interface Fare {
  /** The day's place, from 0 for the first one. */
  day: number;
  hour: number;
  /** When it begins, or now where that is later. */
  from: number;
  price: number;
  point: PricePoint;
}

export interface Calendar {
  /** Midnights in the reader's zone. */
  days: number[];
  fares: Fare[];
}

/** The cheapest stretch of each hour of each day, by the reader's clock. */
export function calendarOf(points: readonly PricePoint[]): Calendar {
  const days: number[] = [];
  const fares = new Map<string, Fare>();
  for (const point of points) {
    const from = Date.parse(point.from);
    const when = new Date(from);
    const midnight = new Date(from).setHours(0, 0, 0, 0);
    if (days.at(-1) !== midnight) days.push(midnight);
    const [day, hour, price] = [days.length - 1, when.getHours(), priceOf(point)];
    const known = fares.get(`${day}:${hour}`);
    if (!known || price < known.price) fares.set(`${day}:${hour}`, { day, hour, from, price, point });
  }
  return { days, fares: [...fares.values()] };
}

/** How hot a price is between the least and the most: by ratio, because prices grow by ratios. */
export function heat(price: number, least: number, most: number): number {
  if (!(most > least) || price <= least) return 0;
  if (least <= 0) return Math.min(1, price / most);
  return Math.min(1, Math.log(price / least) / Math.log(most / least));
}

export function ends(fares: readonly Fare[]): [number, number] {
  return fares.reduce(([low, high], { price }) => [Math.min(low, price), Math.max(high, price)], [Infinity, -Infinity]);
}

/** The cheapest start for work of so many hours: the least sum over hours that follow each other. */
export function cheapestStart(fares: readonly Fare[], hours: number): { fare: Fare; mean: number } | undefined {
  let best: { fare: Fare; mean: number } | undefined;
  for (let first = 0; first + hours <= fares.length; first += 1) {
    const fare = fares[first];
    if (!fare) break;
    let sum = 0;
    for (let at = first; at < first + hours; at += 1) sum += fares[at]?.price ?? Infinity;
    const mean = sum / hours;
    if (!best || mean < best.mean - 1e-9) best = { fare, mean };
  }
  return best;
}

export interface Step {
  at: number;
  price: number;
}

/** Prices that hold until the next one, as corners of a line; the last holds until now, where it becomes what it is now. */
export function stairs(changes: readonly Step[], price: number | undefined, now: number): Step[] {
  const corners: Step[] = [];
  for (const change of changes) {
    const before = corners.at(-1);
    if (before) corners.push({ at: change.at, price: before.price });
    corners.push(change);
  }
  const last = corners.at(-1);
  if (last && last.at < now) corners.push({ at: now, price: last.price });
  if (price !== undefined && (last === undefined || last.price !== price)) corners.push({ at: now, price });
  return corners;
}
