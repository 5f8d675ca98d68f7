import { expect, it } from 'vitest';
import { fileUrl, nameOf } from './sets';

it('no path leaves the place of its set', () => {
  expect(fileUrl('ada', 'x', 'a/b c.txt')).toBe('/api/v1/data/ada/x/files/a/b%20c.txt');
  expect(fileUrl('ada', 'x', '<b>?#.txt')).toBe('/api/v1/data/ada/x/files/%3Cb%3E%3F%23.txt');
  expect(nameOf('a/b/c.txt')).toBe('c.txt');
  expect(nameOf('c.txt')).toBe('c.txt');
});
