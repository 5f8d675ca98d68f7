import { expect, it } from 'vitest';
import { secondsIn } from './seconds';

it('lengths of every size are read at a glance, in either language', () => {
  const cases = [
    [0, '0 s', '0秒'],
    [0.00012, '120 µs', '120微秒'],
    [0.0085, '8.5 ms', '8.5毫秒'],
    [0.25, '250 ms', '250毫秒'],
    [1.5022, '1.5 s', '1.5秒'],
    [3725, '1 h 2 min', '1小时 2分'],
  ] as const;
  for (const [length, english, chinese] of cases) {
    expect(secondsIn('en-GB', length)).toBe(english);
    expect(secondsIn('zh-CN', length)).toBe(chinese);
  }
});
