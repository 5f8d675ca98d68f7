/** An hour that was clicked on a calendar as a window: the job starts in it, and not in a cheaper one. */
import type { Draft } from './draft';
import { instant, localTime } from './spans';

export type Window = Pick<Draft, 'from' | 'by'>;

/**
 * From the moment that was clicked, so that the last start is in the last minute of its hour by the
 * reader's clock; without an end as long as nobody knows how long the job runs, and nothing where the
 * moment is not understood.
 */
export function windowAt(at: string, seconds: number | undefined): Window | undefined {
  const from = instant(at);
  if (from === undefined) return undefined;
  const lastStart = new Date(from).setMinutes(59, 0, 0);
  return { from: localTime(from), by: seconds === undefined ? '' : localTime(lastStart + Math.floor(seconds / 60) * 60_000) };
}

/** Whether a draft still has the window that was made for it: the reader has not touched it. */
export function untouched(draft: Draft, made: Window): boolean {
  return draft.from === made.from && draft.by === made.by;
}
