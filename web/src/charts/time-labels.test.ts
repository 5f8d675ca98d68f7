import { expect, it } from 'vitest';
import { timeLabels } from './time-labels';

const at = (hour: number, minute = 0, second = 0) => new Date(2030, 4, 6, hour, minute, second).getTime();

it('no two ticks have the same label', () => {
  for (const ticks of [[at(0), at(6), at(12), at(18)], [at(9, 0, 0), at(9, 0, 15), at(9, 0, 30)], [at(9, 0), at(9, 1), at(9, 2)]]) {
    const labels = timeLabels(ticks);
    expect(new Set(labels).size).toBe(ticks.length);
  }
});

it('a day is named where it begins', () => {
  expect(timeLabels([at(0), at(12)])[0]).toMatch(/May/);
  expect(timeLabels([at(0), at(12)])[1]).toMatch(/12/);
});
