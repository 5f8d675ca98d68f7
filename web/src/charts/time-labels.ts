/** What stands under the ticks of a time axis: the hour, where a day begins the day, or seconds where ticks are near. */
import { dayShort, second, time } from '../text';

const MINUTE_MS = 60_000;

/** One label for each moment, in milliseconds. */
export function timeLabels(moments: readonly number[]): string[] {
  const gap = moments.length > 1 ? ((moments.at(-1) ?? 0) - (moments[0] ?? 0)) / (moments.length - 1) : MINUTE_MS;
  return moments.map((at) => {
    const when = new Date(at);
    const midnight = when.getHours() === 0 && when.getMinutes() === 0 && when.getSeconds() === 0;
    return midnight ? dayShort(at) : gap < MINUTE_MS ? second(at) : time(at);
  });
}
