/**
 * Values as the server gives them beside its codes, in the reader's way: money comes in millionths
 * of a credit, instants and spans in milliseconds, shares and resources in thousandths.
 */
import { credits, duration, momentToSecond, number, percent, stretch } from '../format';

export type Parameters = Readonly<Record<string, unknown>>;
/** What is said of each code; nothing where it cannot be said, and then the server's sentence stands. */
export type Sayings = Readonly<Record<string, (given: Parameters) => string | undefined>>;

export const n = (given: unknown) => number(Number(given));
export const money = (given: unknown) => credits(Number(given) / 1e6);
export const at = (given: unknown) => momentToSecond(Number(given));
export const span = (given: unknown) => duration(Number(given) / 1000);
export const share = (given: unknown) => percent(Number(given) / 1000);
export const milli = (given: unknown) => number(Number(given) / 1000, 3);

/** An amount of a resource: memory comes in MiB. */
export const amount = (resource: unknown, given: unknown) => (resource === 'memory' ? `${number(Number(given) / 1024, 1)} GiB` : milli(given));

/** Whether a limit is a whole group's. */
export const ofGroup = (scope: unknown) => typeof scope === 'object' && scope !== null && 'group' in scope;

/** What a refused budget was, where a quota of credits was exceeded. */
export function spending(what: unknown, limit: unknown, used: unknown, asked: unknown) {
  const micro = what === 'credits' ? 1e6 : what === 'micro-credits' ? 1 : undefined;
  return micro && { limit: money(Number(limit) * micro), used: money(Number(used) * micro), asked: money(Number(asked) * micro) };
}

/** A stretch of time on some machines. */
export interface Slot {
  from: number;
  to: number;
  nodes: readonly string[];
  /** How many more machines than are named. */
  more: number;
}

export const slot = (given: unknown) => given as Slot | undefined;
export const slots = (given: unknown) => (Array.isArray(given) ? (given as Slot[]) : []);

/** From when until when. */
export const lasting = ({ from, to }: Slot) => stretch(from, to);
