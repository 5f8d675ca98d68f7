/** Axes: pure arithmetic of ticks and of where a value lies. */

/** A value's place between two ends, where the ends may be the same. */
export function place(value: number, from: number, to: number, start: number, end: number): number {
  if (to === from) return (start + end) / 2;
  return start + ((value - from) / (to - from)) * (end - start);
}

/** The least and the greatest of numbers that are numbers; nothing of none. */
export function extent(values: Iterable<number>): [number, number] | undefined {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : undefined;
}

/** Round numbers between two ends, about so many: steps of 1, 2 or 5 times a power of ten. */
export function ticks(from: number, to: number, about: number): number[] {
  if (!(to > from) || about < 1) return [from];
  const rough = (to - from) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const over = rough / power - 1e-9;
  const step = power * (over > 5 ? 10 : over > 2 ? 5 : over > 1 ? 2 : 1);
  const first = Math.ceil(from / step);
  const last = Math.floor(to / step + 1e-9);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toFixed(digits)));
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY];

export interface TimeTick {
  at: number;
  /** Whether a day begins here in the reader's zone. */
  midnight: boolean;
}

/** Round times between two, about so many, counted from midnight in the reader's zone. */
export function timeTicks(from: number, to: number, about: number): TimeTick[] {
  const rough = (to - from) / Math.max(1, about);
  const step = STEPS.find((one) => one >= rough) ?? 30 * DAY;
  const start = new Date(from);
  start.setHours(0, 0, 0, 0);
  const found: TimeTick[] = [];
  for (let day = new Date(start); day.getTime() <= to && found.length < 500; day.setDate(day.getDate() + Math.max(1, Math.round(step / DAY)))) {
    const midnight = day.getTime();
    // A day may have 23 or 25 hours: its ticks are counted anew from each midnight.
    const next = new Date(midnight);
    next.setDate(next.getDate() + 1);
    for (let at = midnight; at < (step >= DAY ? midnight + 1 : next.getTime()); at += step) {
      if (at >= from && at <= to) found.push({ at, midnight: at === midnight });
    }
  }
  return found;
}
