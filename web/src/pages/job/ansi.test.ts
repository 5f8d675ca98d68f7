import { describe, expect, it } from 'vitest';
import { bare, Carried, marked, pieces, PLAIN } from './ansi';

describe('a log line', () => {
  it('keeps its colours and nothing else of its control sequences', () => {
    const { pieces: found, style } = pieces('\x1b[1;32mok\x1b[0m then \x1b[31mbad');
    expect(found).toEqual([{ text: 'ok', style: 'fg-2 bold' }, { text: ' then ', style: '' }, { text: 'bad', style: 'fg-1' }]);
    expect(style).toEqual({ ...PLAIN, colour: 1 });
    expect(bare('\x1b]0;title\x07a\x1b[2Kb\x1b[10;20Hc\x07\x08d')).toBe('abcd');
  });

  it('goes on in the style of the line before', () => {
    const { style } = pieces('\x1b[34mblue');
    expect(pieces('still', style).pieces).toEqual([{ text: 'still', style: 'fg-4' }]);
  });

  it('of a progress bar is its last drawing', () => {
    expect(bare('10%\r50%\r100%')).toBe('100%');
    expect(bare('done\r')).toBe('done');
  });

  it('has the nearest of the sixteen colours where it asks for another', () => {
    const colour = (codes: string) => pieces(`\x1b[${codes}mx`).pieces[0]?.style;
    expect(colour('38;5;9')).toBe('fg-1 bold');
    expect(colour('38;5;196')).toBe('fg-1 bold');
    expect(colour('38;5;208')).toMatch(/^fg-[13]/);
    expect(colour('38;5;22')).toMatch(/^fg-2/);
    expect(colour('38;5;244')).toMatch(/^fg-0/);
    expect(colour('38;5;255')).toMatch(/^fg-7/);
    expect(colour('38;2;30;144;255')).toMatch(/^fg-[46]/);
    expect(colour('38:2::255:0:0')).toBe('fg-1 bold');
    expect(colour('38:2:0:200:0')).toMatch(/^fg-2/);
    expect(colour('48;5;196')).toBe('bg-1');
    expect(colour('38;2;255;0;0;1;4')).toBe('fg-1 bold underlined');
    expect(colour('38;5;999')).toBe('');
    expect(colour('38;2;1')).toBe('');
  });

  it('that is hostile stays text', () => {
    expect(pieces('<script>alert(1)</script>').pieces).toEqual([{ text: '<script>alert(1)</script>', style: '' }]);
    expect(bare('\x1b[38;5;9mred\x1b[38;2;1;2;3mother')).toBe('redother');
    expect(bare('\x1b[')).toBe('[');
  });
});

it('each stream of each replica goes on in its own colour', () => {
  const line = (text: string, rank = 0, stream = 'out') => ({ attempt: 1, rank, stream, text });
  const all = [line('\x1b[32mgreen'), line('plain', 1), line('still green'), line('plain', 0, 'err'), line('over\r\x1b[0m'), line('plain again')];
  const carried = new Carried();
  for (const one of all) carried.add(one);
  expect(all.map((one) => carried.of(one).colour)).toEqual([undefined, undefined, 2, undefined, 2, undefined]);
});

describe('a search', () => {
  it('marks a match that goes over two colours, in both', () => {
    const { pieces: found } = pieces('an \x1b[31mer\x1b[32mror\x1b[0m here');
    expect(marked(found, 'error').map(({ text, hit, style }) => [text, hit, style])).toEqual([
      ['an ', false, ''],
      ['er', true, 'fg-1'],
      ['ror', true, 'fg-2'],
      [' here', false, ''],
    ]);
  });

  it('marks every match and loses no letter', () => {
    const { pieces: found } = pieces('aXa\x1b[1mXaXa');
    const parts = marked(found, 'a');
    expect(parts.map(({ text }) => text).join('')).toBe('aXaXaXa');
    expect(parts.filter(({ hit }) => hit)).toHaveLength(4);
    expect(marked(found, '').every(({ hit }) => !hit)).toBe(true);
    expect(marked(found, 'nothing').some(({ hit }) => hit)).toBe(false);
  });
});
