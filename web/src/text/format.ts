/**
 * Dates, durations, credits, sizes and shares in the reader's way: pure functions of a value and a
 * locale, and beside them the same for the locale in use.
 */
import { locale } from './locale.svelte';

const cache = new Map<string, unknown>();
/** Formatters are dear to make and cheap to use. */
function kept<T>(key: string, make: () => T): T {
  let made = cache.get(key) as T | undefined;
  if (made === undefined) {
    made = make();
    cache.set(key, made);
  }
  return made;
}

/** A credit has a million parts. */
const DIGITS_MAX = 6;
/** Where many amounts stand below one another. */
const IN_COLUMNS_MAX = 4;

function numbers(tag: string, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  return kept(`n${tag}${JSON.stringify(options)}`, () => new Intl.NumberFormat(tag, options));
}

function dates(tag: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  return kept(`d${tag}${JSON.stringify(options)}`, () => new Intl.DateTimeFormat(tag, options));
}

/**
 * Credits that stand together, in a column: all with the same digits behind the point. These
 * are two; where even the largest amount is less than a hundredth, three or four.
 */
export function creditsAlikeIn(tag: string, amounts: Iterable<string | number>): (amount: string | number) => string {
  return shownWith(tag, digitsFor(amounts, IN_COLUMNS_MAX));
}

/** What a job costs, in any list: two digits, whatever stands beside it. */
export function costIn(tag: string, amount: string | number): string {
  return shownWith(tag, 2)(amount);
}

/**
 * What came in, what went out again and what is left: with as many digits more as it takes until they
 * add up as they are shown.
 */
export function creditsSumIn(tag: string, came: string | number, went: string | number, left: string | number): (amount: string | number) => string {
  const rounded = (amount: string | number, digits: number) => {
    const size = Math.round(Math.abs(Number(amount)) * 1e6) / 10 ** (6 - digits);
    return Math.sign(Number(amount)) * Math.round(size);
  };
  let digits = digitsFor([came, went, left], IN_COLUMNS_MAX);
  while (digits < DIGITS_MAX && rounded(came, digits) - rounded(went, digits) !== rounded(left, digits)) digits += 1;
  return shownWith(tag, digits);
}

function digitsFor(amounts: Iterable<string | number>, most: number): number {
  let largest = 0;
  for (const amount of amounts) largest = Math.max(largest, Math.abs(Number(amount)));
  return largest > 0 && largest < 0.01 ? Math.min(most, 1 - Math.floor(Math.log10(largest))) : 2;
}

function shownWith(tag: string, digits: number): (amount: string | number) => string {
  const format = numbers(tag, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const least = 10 ** -digits;
  return (amount) => {
    const given = Number(amount);
    // What is not nothing is not shown as nothing.
    if (given > 0 && given < least / 2) return `<${format.format(least)}`;
    if (given < 0 && given > -least / 2) return `>${format.format(-least)}`;
    return format.format(given);
  };
}

/** Credits that stand alone. */
export function creditsIn(tag: string, amount: string | number): string {
  return shownWith(tag, digitsFor([amount], DIGITS_MAX))(amount);
}

/** Every digit of an amount, for titles; nothing where it is shown with all of them anyway. */
export function creditsExactIn(tag: string, amount: string | number, shown: string): string | undefined {
  const exact = numbers(tag, { minimumFractionDigits: 2, maximumFractionDigits: 6 }).format(Number(amount));
  return exact === shown ? undefined : exact;
}

/** A number with at most so many digits behind the point. */
export function numberIn(tag: string, value: number, digits = 0): string {
  return numbers(tag, { maximumFractionDigits: digits }).format(value);
}

/** A number with exactly so many digits behind the point, as one of many that are compared. */
export function fixedIn(tag: string, value: number, digits: number): string {
  const exact = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return numbers(tag, exact).format(value);
}

/** A measured value of any magnitude, to four digits that matter. */
export function valueIn(tag: string, value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
    return numbers(tag, { notation: 'scientific', maximumSignificantDigits: 4 }).format(value);
  }
  return numbers(tag, { maximumSignificantDigits: 4 }).format(value);
}

/** A share of 1 as a percentage. */
export function percentIn(tag: string, share: number, digits = 0): string {
  return numbers(tag, { style: 'percent', maximumFractionDigits: digits }).format(share);
}

const SIZES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** A number of bytes. */
export function bytesIn(tag: string, bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < SIZES.length - 1) {
    size /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || size >= 100 ? 0 : 1;
  return `${numbers(tag, { maximumFractionDigits: digits }).format(size)} ${SIZES[unit]}`;
}

const UNITS = {
  en: { d: 'd', h: 'h', m: 'min', s: 's', gap: ' ' },
  zh: { d: '天', h: '小时', m: '分', s: '秒', gap: '' },
};

/** A length of time by its two largest units: `2 h 5 min`. */
export function durationIn(tag: string, seconds: number): string {
  const unit = tag.startsWith('zh') ? UNITS.zh : UNITS.en;
  const whole = Math.max(0, Math.round(seconds));
  const parts: [number, string][] = [
    [Math.floor(whole / 86_400), unit.d],
    [Math.floor((whole % 86_400) / 3600), unit.h],
    [Math.floor((whole % 3600) / 60), unit.m],
    [whole % 60, unit.s],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  if (first < 0) return `0${unit.gap}${unit.s}`;
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, name]) => `${numberIn(tag, count)}${unit.gap}${name}`).join(' ');
}

/** A count of seconds as a clock: `1:02:09`. */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  const two = (part: number) => String(part).padStart(2, '0');
  const hours = Math.floor(whole / 3600);
  const rest = `${two(Math.floor((whole % 3600) / 60))}:${two(whole % 60)}`;
  return hours > 0 ? `${hours}:${rest}` : rest;
}

export type Moment = string | number | Date;

/** A time of day, with the day where it is not today; to the second where that is asked for. */
export function momentIn(tag: string, at: Moment, now: Moment = Date.now(), seconds = false): string {
  const [when, today] = [new Date(at), new Date(now)];
  const sameDay = when.toDateString() === today.toDateString();
  const sameYear = when.getFullYear() === today.getFullYear();
  const day: Intl.DateTimeFormatOptions = sameDay ? {} : { month: 'short', day: 'numeric' };
  const year: Intl.DateTimeFormatOptions = sameYear ? {} : { year: 'numeric' };
  const clock: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', ...(seconds && { second: '2-digit' }) };
  return dates(tag, { ...clock, ...day, ...year }).format(when);
}

/** From when until when, to the second, with the day once where both are on it. */
export function stretchIn(tag: string, from: Moment, to: Moment, now: Moment = Date.now()): string {
  const [begin, end, today] = [new Date(from), new Date(to), new Date(now)];
  const isToday = (when: Date) => when.toDateString() === today.toDateString();
  const day: Intl.DateTimeFormatOptions = isToday(begin) && isToday(end) ? {} : { month: 'short', day: 'numeric' };
  const year: Intl.DateTimeFormatOptions = begin.getFullYear() === today.getFullYear() && end.getFullYear() === today.getFullYear() ? {} : { year: 'numeric' };
  return dates(tag, { hour: '2-digit', minute: '2-digit', second: '2-digit', ...day, ...year }).formatRange(begin, end);
}

/** A time of day. */
export function timeIn(tag: string, at: Moment): string {
  return dates(tag, { hour: '2-digit', minute: '2-digit' }).format(new Date(at));
}

/** An hour of the day alone, by the clock of the place: `18`, or `6 PM`. */
export function hourIn(tag: string, hour: number): string {
  const parts = dates(tag, { hour: '2-digit' }).formatToParts(new Date(2001, 0, 1, hour));
  const half = parts.some(({ type }) => type === 'dayPeriod');
  const said = parts.flatMap(({ type, value }) => (type === 'hour' && half ? [value.replace(/^0(?=.)/, '')] : type === 'hour' || type === 'dayPeriod' ? [value] : []));
  return said.join(' ');
}

/** A time of day to the second. */
export function secondIn(tag: string, at: Moment): string {
  return dates(tag, { hour: '2-digit', minute: '2-digit', second: '2-digit' }).format(new Date(at));
}

/** A time in full, with its zone, for titles. */
export function fullMomentIn(tag: string, at: Moment): string {
  return dates(tag, { dateStyle: 'medium', timeStyle: 'long' }).format(new Date(at));
}

/** A day. */
export function dayIn(tag: string, at: Moment): string {
  return dates(tag, { weekday: 'short', month: 'short', day: 'numeric' }).format(new Date(at));
}

/** A day without its weekday, where there is little room. */
export function dayShortIn(tag: string, at: Moment): string {
  return dates(tag, { month: 'short', day: 'numeric' }).format(new Date(at));
}

/** How long ago, or from now: `in 5 min`. */
export function relativeIn(tag: string, at: Moment, now: Moment = Date.now()): string {
  const seconds = (new Date(at).getTime() - new Date(now).getTime()) / 1000;
  const format = kept(`r${tag}`, () => new Intl.RelativeTimeFormat(tag, { numeric: 'auto', style: 'short' }));
  const size = Math.abs(seconds);
  if (size < 60) return format.format(Math.round(seconds), 'second');
  if (size < 3600) return format.format(Math.round(seconds / 60), 'minute');
  if (size < 86_400) return format.format(Math.round(seconds / 3600), 'hour');
  return format.format(Math.round(seconds / 86_400), 'day');
}

export const credits = (amount: string | number) => creditsIn(locale.tag, amount);
export const creditsAlike = (amounts: Iterable<string | number>) => creditsAlikeIn(locale.tag, amounts);
export const cost = (amount: string | number) => costIn(locale.tag, amount);
export const creditsSum = (came: string | number, went: string | number, left: string | number) => creditsSumIn(locale.tag, came, went, left);
export const creditsExact = (amount: string | number, shown: string) => creditsExactIn(locale.tag, amount, shown);
export const fixed = (value: number, digits: number) => fixedIn(locale.tag, value, digits);
export const number = (value: number, digits?: number) => numberIn(locale.tag, value, digits);
export const value = (measured: number) => valueIn(locale.tag, measured);
export const percent = (share: number, digits?: number) => percentIn(locale.tag, share, digits);
export const bytes = (count: number) => bytesIn(locale.tag, count);
export const duration = (seconds: number) => durationIn(locale.tag, seconds);
export const moment = (at: Moment) => momentIn(locale.tag, at);
export const momentToSecond = (at: Moment) => momentIn(locale.tag, at, Date.now(), true);
export const stretch = (from: Moment, to: Moment) => stretchIn(locale.tag, from, to);
export const hour = (of: number) => hourIn(locale.tag, of);
export const time = (at: Moment) => timeIn(locale.tag, at);
export const second = (at: Moment) => secondIn(locale.tag, at);
export const fullMoment = (at: Moment) => fullMomentIn(locale.tag, at);
export const day = (at: Moment) => dayIn(locale.tag, at);
export const dayShort = (at: Moment) => dayShortIn(locale.tag, at);
export const relative = (at: Moment, now?: Moment) => relativeIn(locale.wordTag, at, now);
