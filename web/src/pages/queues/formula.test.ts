import { describe, expect, it } from 'vitest';
import { completed, marked, suggestions, tokens, unitAt, wordAt } from './formula';

const names = new Set(['wait', 'user_level', 'gpus', 'free_gpus']);

describe('the words of a formula', () => {
  it('are all of it, in order', () => {
    const source = '10 * user_level + if(field == "a b", wiat, 1.5)  and ü';
    const found = tokens(source, names);
    expect(found.map(({ text }) => text).join('')).toBe(source);
    expect(found.every(({ from, text }) => source.startsWith(text, from))).toBe(true);
    const kinds = Object.fromEntries(found.filter(({ kind }) => kind !== 'space' && kind !== 'sign').map(({ text, kind }) => [text, kind]));
    expect(kinds).toEqual({ '10': 'number', user_level: 'name', if: 'function', field: 'name', '"a b"': 'text', wiat: 'unknown', '1.5': 'number', and: 'word' });
  });

  it('may be unfinished', () => {
    expect(tokens('wait + "vis', names).at(-1)).toMatchObject({ kind: 'text', text: '"vis' });
    expect(tokens('', names)).toEqual([]);
  });
});

describe('completion', () => {
  it('knows the word before the caret, and none within quotes or in a number', () => {
    expect(wordAt('2 * us', 6)).toEqual({ from: 4, word: 'us' });
    expect(wordAt('2 * ', 4)).toEqual({ from: 4, word: '' });
    expect(wordAt('field == "vi', 12)).toBeUndefined();
    expect(wordAt('2e', 2)).toBeUndefined();
  });
  it('offers what begins so before what contains it', () => {
    expect(suggestions('gp', ['free_gpus', 'gpus', 'wait'])).toEqual(['gpus', 'free_gpus']);
    expect(suggestions('', ['a', 'b'])).toEqual(['a', 'b']);
    expect(suggestions('x', ['max'])).toEqual([]);
  });
  it('replaces the whole word, and opens the brackets of a function', () => {
    expect(completed('2 * us', 6, 'user_level')).toEqual({ source: '2 * user_level', caret: 14 });
    expect(completed('us_old + 1', 2, 'user_level')).toEqual({ source: 'user_level + 1', caret: 10 });
    expect(completed('cl', 2, 'clamp')).toEqual({ source: 'clamp(', caret: 6 });
    expect(completed('cl(1, 2)', 2, 'clamp')).toEqual({ source: 'clamp(1, 2)', caret: 5 });
  });
});

describe('a problem', () => {
  it('lies where the server counted, also behind letters of two units', () => {
    expect(unitAt('😀 + x', 4)).toBe(5);
    expect(marked('"😀" + wiat * 2', 6)).toEqual({ from: 7, to: 11 });
  });
  it('at the end marks one place more', () => {
    expect(marked('1 +', 3)).toEqual({ from: 3, to: 4 });
  });
});
