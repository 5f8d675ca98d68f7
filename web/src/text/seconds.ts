/** A measured length of time, from microseconds to days, in the reader's way. */
import { durationIn, numberIn } from './format';
import { locale } from './locale.svelte';

const UNITS = {
  en: { micro: ' µs', milli: ' ms', whole: ' s' },
  zh: { micro: '微秒', milli: '毫秒', whole: '秒' },
};

export function secondsIn(tag: string, value: number): string {
  const unit = tag.startsWith('zh') ? UNITS.zh : UNITS.en;
  if (value === 0) return `0${unit.whole}`;
  if (value < 0.001) return `${numberIn(tag, value * 1e6)}${unit.micro}`;
  if (value < 1) return `${numberIn(tag, value * 1000, value < 0.1 ? 1 : 0)}${unit.milli}`;
  if (value < 60) return `${numberIn(tag, value, 1)}${unit.whole}`;
  return durationIn(tag, value);
}

export const seconds = (value: number) => secondsIn(locale.tag, value);
