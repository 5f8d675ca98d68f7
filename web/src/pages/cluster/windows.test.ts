import { expect, it } from 'vitest';
import { ahead, fromField, localField, withWindow, wrongWith } from './windows';

const at = (hour: number) => new Date(Date.UTC(2026, 5, 1, hour)).toISOString();
const now = Date.parse(at(10));
const windows = [{ from: at(8), to: at(9) }, { from: at(12), to: at(14) }];

it('only what is not over is announced again, in order', () => {
  expect(ahead(windows, now)).toEqual([windows[1]]);
  expect(withWindow(windows, { from: at(11), to: at(12) }, now)).toEqual([{ from: at(11), to: at(12) }, windows[1]]);
});

it('an absence must be whole, ahead and clear of others; touching is clear', () => {
  expect(wrongWith({ from: '', to: at(12) }, windows, now)).toBe('incomplete');
  expect(wrongWith({ from: at(12), to: at(12) }, windows, now)).toBe('backwards');
  expect(wrongWith({ from: at(7), to: at(9) }, windows, now)).toBe('past');
  expect(wrongWith({ from: at(13), to: at(15) }, windows, now)).toBe('overlaps');
  expect(wrongWith({ from: at(14), to: at(15) }, windows, now)).toBeUndefined();
});

it('a moment survives its field to the minute', () => {
  const moment = new Date(2026, 10, 5, 7, 30).getTime();
  expect(localField(moment)).toBe('2026-11-05T07:30');
  expect(Date.parse(fromField(localField(moment)))).toBe(moment);
  expect(fromField('soon')).toBe('');
});
