import { describe, expect, it } from 'vitest';
import { PARTS, rulesOf, ruleText, ruleValue, type Kind } from './rules';

describe('the rules of the house', () => {
  it('are written for people, and read back as they were', () => {
    const cases: [Kind, unknown, string][] = [
      ['span', 60, '1m'],
      ['span', 0, '0s'],
      ['span', 2.5, '2.5s'],
      ['span', 90_061, '1d1h1m1s'],
      ['span', 31_536_000, '365d'],
      ['share', 0.8, '80'],
      ['share', 0.125, '12.5'],
      ['share', 0.555, '55.5'],
      ['times', 0.5, '0.5'],
      ['count', 100_000, '100000'],
      [['none', 'easy'], 'easy', 'easy'],
    ];
    for (const [kind, value, text] of cases) {
      expect(ruleText(kind, value)).toBe(text);
      expect(ruleValue(kind, text), text).toBe(value);
    }
  });

  it('are taken as people write them, and nothing else is', () => {
    expect(ruleValue('span', ' 1.5 h ')).toBe(5400);
    expect(ruleValue('span', '2h 30m')).toBe(9000);
    expect(ruleValue('share', '12,5')).toBe(0.125);
    for (const text of ['', '30', 'soon', '1h or so', '-1s']) expect(ruleValue('span', text), text).toBeUndefined();
    for (const text of ['', '101', '-1', '1e1']) expect(ruleValue('share', text), text).toBeUndefined();
    for (const text of ['1.5', '4294967296', 'x']) expect(ruleValue('count', text), text).toBeUndefined();
    expect(ruleValue(['none'], 'hard')).toBeUndefined();
  });

  it('have each rule once', () => {
    const all = PARTS.flatMap((part) => rulesOf(part).map(([rule]) => rule));
    expect(new Set(all).size).toBe(all.length);
  });
});
