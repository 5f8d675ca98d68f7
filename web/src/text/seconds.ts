/** A measured length of time, from microseconds to days, in the reader's way. */
import { duration, number } from './format';

export function seconds(value: number): string {
  if (value === 0) return '0 s';
  if (value < 0.001) return `${number(value * 1e6)} µs`;
  if (value < 1) return `${number(value * 1000, value < 0.1 ? 1 : 0)} ms`;
  if (value < 60) return `${number(value, 1)} s`;
  return duration(value);
}
