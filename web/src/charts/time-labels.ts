/** What stands under the ticks of a time axis: the hour, and where a day begins the day. */
import { day, time } from '../text';

/** One label for each moment, in milliseconds. */
export function timeLabels(moments: readonly number[]): string[] {
  return moments.map((at) => {
    const when = new Date(at);
    const midnight = when.getHours() === 0 && when.getMinutes() === 0;
    return midnight ? day(at) : time(at);
  });
}
