import { expect, it } from 'vitest';
import { csvText } from './csv';

it('values with commas, quotes and lines stay one value', () => {
  expect(csvText([['a', 'b, c', 'say "hi"', 'two\nlines'], [1, -2.5, undefined, '-3.50']])).toBe('a,"b, c","say ""hi""","two\nlines"\r\n1,-2.5,,-3.50\r\n');
});

it('no name becomes a formula', () => {
  expect(csvText([['=1+1', '+x', '@y', '-z', '-12.5']])).toBe("'=1+1,'+x,'@y,'-z,-12.5\r\n");
});
