import { describe, expect, it } from 'vitest';
import { instant, localTime, localTimeUp, readSpan, writeSpan } from './spans';

describe('lengths of time', () => {
  it('are read as the command line reads them', () => {
    const all: [string, number | undefined][] = [
      ['2h30m', 9000], ['45m', 2700], ['90', 5400], ['90s', 90], ['1.5 hours', 5400], ['30:00', 1800], ['12:00:00', 43_200],
      ['2-12:00:00', 216_000], ['2-12', 216_000], ['1d, 2h', 93_600], ['', undefined], ['soon', undefined], ['0', undefined],
      ['5x', undefined], ['2h30', undefined], ['400d', undefined],
    ];
    for (const [text, seconds] of all) expect(readSpan(text), text).toBe(seconds);
  });

  it('are written so that they read back', () => {
    for (const seconds of [1, 59, 60, 3600, 5400, 93_784, 604_800]) expect(readSpan(writeSpan(seconds))).toBe(seconds);
  });
});

describe('points in time', () => {
  it('come back from the control as they went in', () => {
    const at = new Date(2026, 10, 20, 6, 5);
    expect(localTime(at)).toBe('2026-11-20T06:05');
    expect(instant('2026-11-20T06:05')).toBe(at.toISOString());
    expect(localTimeUp(new Date(2026, 10, 20, 6, 5, 1))).toBe('2026-11-20T06:06');
  });

  it('are absent where nothing or nonsense is written', () => {
    expect(instant(' ')).toBeUndefined();
    expect(instant('tomorrow')).toBeUndefined();
  });
});
