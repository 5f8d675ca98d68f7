/**
 * Lengths and points of time as the form and the YAML have them: `2h30m`, and local times as a
 * browser's own control writes them (`2026-11-20T06:00`). The command line reads both.
 */
const UNITS: Record<string, number> = {
  s: 1, sec: 1, secs: 1, second: 1, seconds: 1,
  m: 60, min: 60, mins: 60, minute: 60, minutes: 60,
  h: 3600, hr: 3600, hrs: 3600, hour: 3600, hours: 3600,
  d: 86_400, day: 86_400, days: 86_400,
  w: 604_800, week: 604_800, weeks: 604_800,
};
const YEAR_S = 366 * 86_400;

/** Seconds of `2h30m`, `1.5 hours`, `90` (minutes), `12:00:00` or `2-12:00:00`; nothing of anything else. */
export function readSpan(text: string): number | undefined {
  const plain = text.trim().toLowerCase();
  if (plain === '' || plain.length > 40) return undefined;
  const seconds = clock(plain) ?? units(plain);
  return seconds !== undefined && seconds >= 1 && seconds <= YEAR_S ? Math.ceil(seconds) : undefined;
}

function clock(text: string): number | undefined {
  const parts = /^(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?$/.exec(text);
  if (!parts) return undefined;
  const [, days, a, b, c] = parts;
  const [first, second, third] = [Number(a), b === undefined ? undefined : Number(b), c === undefined ? undefined : Number(c)];
  const [hours, minutes, rest] =
    days !== undefined || third !== undefined ? [first, second ?? 0, third ?? 0] : second !== undefined ? [0, first, second] : [0, first, 0];
  return Number(days ?? 0) * 86_400 + hours * 3600 + minutes * 60 + rest;
}

function units(text: string): number | undefined {
  let seconds = 0;
  let rest = text;
  while (rest !== '') {
    const part = /^(\d{1,9}(?:\.\d{1,3})?)\s*([a-z]+)[\s,]*/.exec(rest);
    const unit = part?.[2] === undefined ? undefined : UNITS[part[2]];
    if (!part || unit === undefined) return undefined;
    seconds += Number(part[1]) * unit;
    rest = rest.slice(part[0].length);
  }
  return seconds;
}

/** Seconds as they are read back: `1d2h`, `45m`, `90s`. */
export function writeSpan(seconds: number): string {
  let rest = Math.max(1, Math.round(seconds));
  let text = '';
  for (const [unit, size] of [['d', 86_400], ['h', 3600], ['m', 60], ['s', 1]] as const) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) text += `${count}${unit}`;
  }
  return text;
}

/** A moment as `datetime-local` has it, in the reader's zone, to the minute. */
export function localTime(at: number | string | Date): string {
  const when = new Date(at);
  const two = (part: number) => String(part).padStart(2, '0');
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}T${two(when.getHours())}:${two(when.getMinutes())}`;
}

/** The same up to the next minute: a deadline must not be cut short. */
export function localTimeUp(at: number | string | Date): string {
  return localTime(Math.ceil(new Date(at).getTime() / 60_000) * 60_000);
}

/** The instant of a local time, as the wire has it. Nothing of nothing, and of nonsense. */
export function instant(local: string): string | undefined {
  if (local.trim() === '') return undefined;
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
