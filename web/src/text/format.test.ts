import { describe, expect, it } from 'vitest';
import { bytesIn, clock, costIn, creditsAlikeIn, creditsExactIn, creditsIn, creditsSumIn, durationIn, hourIn, momentIn, percentIn, relativeIn, stretchIn, valueIn } from './format';
import { formatTag, preferred, wordTag } from './locale.svelte';

describe('formats', () => {
  it('write credits to the hundredth, and tiny ones so that something is seen', () => {
    expect(creditsIn('en', '1234.5')).toBe('1,234.50');
    expect(creditsIn('en', '0.000004')).toBe('0.000004');
    expect(creditsIn('en', '0.000593')).toBe('0.00059');
    expect(creditsIn('en', '-0.000593')).toBe('-0.00059');
    expect(creditsIn('en', 0)).toBe('0.00');
    expect(creditsIn('de', '1234.5')).toBe('1.234,50');
  });

  it('write credits that stand together with the same digits, four at most, and nothing but nothing as nothing', () => {
    const alike = (...amounts: (string | number)[]) => amounts.map(creditsAlikeIn('en', amounts));
    expect(alike('0.104274', '0.103681', '0.000593')).toEqual(['0.10', '0.10', '<0.01']);
    expect(alike('6.06', '4.848', '1.212')).toEqual(['6.06', '4.85', '1.21']);
    expect(alike('0.000593', '0.000004', 0)).toEqual(['0.0006', '<0.0001', '0.0000']);
    expect(alike('-0.0004', '12')).toEqual(['>-0.01', '12.00']);
    expect(alike('0.00001', '-0.00001')).toEqual(['<0.0001', '>-0.0001']);
    expect(alike()).toEqual([]);
    // Whatever the amounts: as many digits each, and none further away than half of the last one.
    let seed = 7;
    const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
    for (let round = 0; round < 500; round += 1) {
      const amounts = Array.from({ length: 1 + (round % 4) }, () => Math.round((random() - 0.5) * 10 ** Math.floor(random() * 9)) / 1e6);
      const shown = alike(...amounts);
      const digits = new Set(shown.map((text) => text.split('.')[1]?.length));
      expect(digits.size, `${amounts} as ${shown}`).toBe(1);
      expect([...digits][0], `${amounts} as ${shown}`).toBeLessThanOrEqual(4);
      const last = 10 ** -([...digits][0] ?? 0);
      amounts.forEach((amount, at) => {
        const text = shown[at]?.replaceAll(',', '') ?? '';
        const off = /^[<>]/.test(text) ? Math.abs(amount) : Math.abs(Number(text) - amount);
        expect(off, `${amounts} as ${shown}`).toBeLessThanOrEqual(last / 2 + 1e-9);
        expect(/[1-9]/.test(text), `${amounts} as ${shown}`).toBe(amount !== 0);
      });
    }
  });

  it('write a sum of credits so that it adds up as it is shown', () => {
    const sum = (came: number, went: number) => [came, went, came - went].map((micro) => micro / 1e6).map(creditsSumIn('en', came / 1e6, went / 1e6, (came - went) / 1e6));
    expect(sum(104_274, 103_681)).toEqual(['0.10', '0.10', '<0.01']);
    expect(sum(525_000, 524_800)).toEqual(['0.525', '0.525', '<0.001']);
    expect(sum(6_060_000, 4_848_000)).toEqual(['6.06', '4.85', '1.21']);
    expect(sum(4200, 4199)).toEqual(['0.0042', '0.0042', '<0.0001']);
    expect(sum(525_000, 525_000)).toEqual(['0.53', '0.53', '0.00']);
    let seed = 11;
    const random = (most: number) => (seed = (seed * 48_271) % 2_147_483_647) % most;
    for (let round = 0; round < 500; round += 1) {
      const came = random(10 ** (1 + (round % 8)));
      const [a = '', b = '', c = ''] = sum(came, random(came + 1)).map((text) => text.replace(/^<.*/, '0').replaceAll(',', ''));
      expect(Number(a) - Number(b), `${a} less ${b}`).toBeCloseTo(Number(c), 9);
    }
  });

  it('write what a job costs alike in every list, and so that its page does not say otherwise', () => {
    expect(['6.063241', '0.000593', '0', '1234.5'].map((amount) => costIn('en', amount))).toEqual(['6.06', '<0.01', '0.00', '1,234.50']);
    // 0.104274 was charged and 0.103681 came back: the same on the page of the job.
    expect(creditsSumIn('en', '0.104274', '0.103681', '0.000593')('0.000593')).toBe(costIn('en', '0.000593'));
  });

  it('keep every digit of credits for titles, where some are not shown', () => {
    expect(creditsExactIn('en', '0.104274', '0.10')).toBe('0.104274');
    expect(creditsExactIn('en', '0.10', '0.10')).toBeUndefined();
  });

  it('write durations by their two largest units', () => {
    expect(durationIn('en', 0)).toBe('0 s');
    expect(durationIn('en', 59.6)).toBe('1 min');
    expect(durationIn('en', 7500)).toBe('2 h 5 min');
    expect(durationIn('en', 90_061)).toBe('1 d 1 h');
    expect(durationIn('zh-CN', 7500)).toBe('2小时 5分');
  });

  it('write sizes by powers of 1024', () => {
    expect(bytesIn('en', 0)).toBe('0 B');
    expect(bytesIn('en', 1536)).toBe('1.5 KiB');
    expect(bytesIn('en', 5 * 1024 ** 3)).toBe('5 GiB');
  });

  it('count down as a clock that is zero only at the end', () => {
    expect(clock(59.2)).toBe('01:00');
    expect(clock(3725)).toBe('1:02:05');
    expect(clock(-3)).toBe('00:00');
  });

  it('name the day only where it is another one', () => {
    const now = new Date(2026, 10, 15, 12, 0);
    expect(momentIn('en-GB', new Date(2026, 10, 15, 9, 5), now)).toBe('09:05');
    expect(momentIn('en-GB', new Date(2026, 10, 15, 9, 5, 7), now, true)).toBe('09:05:07');
    expect(momentIn('en-GB', new Date(2026, 10, 16, 9, 5), now)).toContain('16 Nov');
    expect(momentIn('en-GB', new Date(2027, 0, 2, 9, 5), now)).toContain('2027');
  });

  it('write an hour by the clock of the place', () => {
    expect([0, 6, 18].map((hour) => hourIn('en-US', hour))).toEqual(['12 AM', '6 AM', '6 PM']);
    for (const tag of ['en-GB', 'de-DE', 'zh-CN']) expect([0, 6, 18].map((hour) => hourIn(tag, hour))).toEqual(['00', '06', '18']);
  });

  it('say how far away a time is', () => {
    expect(relativeIn('en', 300_000, 0)).toBe('in 5 min.');
    expect(relativeIn('zh-CN', -7_200_000, 0)).toBe('2小时前');
  });

  it('keep four digits of a measured value, whatever its size', () => {
    expect(valueIn('en', 0.123456)).toBe('0.1235');
    expect(valueIn('en', 0.0000123)).toBe('1.23E-5');
    expect(valueIn('en', Number.NaN)).toBe('NaN');
    expect(percentIn('en', 0.8349, 1)).toBe('83.5%');
  });
});

describe('the language', () => {
  it('is the first of the browser’s that there are words in', () => {
    expect(preferred(['fr-FR', 'zh-TW', 'en'])).toBe('zh');
    expect(preferred(['fr'])).toBe('en');
  });

  it('leaves dates to the reader’s own country', () => {
    expect(formatTag('en', ['zh-CN', 'en-GB'])).toBe('en-GB');
    expect(formatTag('zh', ['en-GB'])).toBe('zh-CN');
  });

  it('leaves dates, numbers and the clock to readers of a third language, and its own words in one', () => {
    expect(formatTag('en', ['de-DE'])).toBe('de-DE');
    expect(formatTag('en', ['de-DE', 'de', 'en-US', 'en'])).toBe('de-DE');
    expect(formatTag('en', ['en-GB', 'de'])).toBe('en-GB');
    expect(formatTag('zh', ['de-DE', 'en'])).toBe('zh-CN');
    expect(wordTag('en', ['de-DE'])).toBe('en');
    expect(wordTag('en', ['de-DE', 'en-GB'])).toBe('en-GB');
  });
});

it('a stretch of time names its day once', () => {
  const at = (day: number, hour: number) => new Date(2030, 4, day, hour);
  expect(stretchIn('en-GB', at(6, 12), at(6, 14), at(6, 9))).toMatch(/^12:00:00\s?–\s?14:00:00$/);
  expect(stretchIn('en-GB', at(7, 12), at(7, 14), at(6, 9))).toMatch(/^7 May,? 12:00:00\s?–\s?14:00:00$/);
  expect(stretchIn('en-GB', at(6, 23), at(7, 1), at(6, 9))).toMatch(/6 May.*23:00:00.*7 May.*01:00:00/);
  expect(stretchIn('zh-CN', at(6, 12), at(6, 14), at(6, 9))).toMatch(/12:00:00.*14:00:00/);
});
