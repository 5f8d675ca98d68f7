import { describe, expect, it } from 'vitest';
import { bare, pieces, PLAIN } from './ansi';

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

  it('that is hostile stays text', () => {
    expect(pieces('<script>alert(1)</script>').pieces).toEqual([{ text: '<script>alert(1)</script>', style: '' }]);
    expect(bare('\x1b[38;5;9mred\x1b[38;2;1;2;3mother')).toBe('redother');
    expect(bare('\x1b[')).toBe('[');
  });
});
