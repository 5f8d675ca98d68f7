import { expect, it } from 'vitest';
import { csvHead, hexLines, imageType, kindOf, prettyJson, separatorOf, textOf } from './preview';

const bytes = (text: string) => new TextEncoder().encode(text);

it('a file is what its name and its bytes say', () => {
  expect(imageType('a/B.PNG')).toBe('image/png');
  expect(imageType('png')).toBeUndefined();
  expect(kindOf('x.png', undefined)).toBe('image');
  expect(kindOf('x.csv', 'a,b')).toBe('csv');
  expect(kindOf('x.json', '{}')).toBe('json');
  expect(kindOf('train.py', 'import os')).toBe('text');
  expect(kindOf('x.csv', undefined)).toBe('binary');
});

it('text is told from bytes, also where a letter is cut at the end', () => {
  expect(textOf(bytes('héllo 你好'), true)).toBe('héllo 你好');
  expect(textOf(bytes('你好').slice(0, 5), false)).toBe('你');
  expect(textOf(new Uint8Array([0xff, 0xfe, 0x41]), true)).toBeUndefined();
  expect(textOf(new Uint8Array([65, 0, 66]), true)).toBeUndefined();
});

it('values may have the separator, quotes and lines in them', () => {
  expect(csvHead('a,b\r\n"x, y","say ""hi""\nthere"\n\n1,2', ',', 10, true)).toEqual([['a', 'b'], ['x, y', 'say "hi"\nthere'], ['1', '2']]);
  expect(csvHead('a,b\n1,2\n3,4', ',', 2, true)).toEqual([['a', 'b'], ['1', '2']]);
  expect(csvHead('a,b\n1,2\n3,4', ',', 10, false)).toEqual([['a', 'b'], ['1', '2']]);
  expect(csvHead('', ',', 10, true)).toEqual([]);
});

it('the separator is the one that the first line has most of', () => {
  expect(separatorOf('x.csv', 'a;b;c,d\n1,2,3,4,5')).toBe(';');
  expect(separatorOf('x.tsv', 'a,b')).toBe('\t');
  expect(separatorOf('x.csv', 'a\tb')).toBe('\t');
  expect(separatorOf('x.csv', 'a,b')).toBe(',');
});

it('JSON gets its lines, and a part of it stays as it is', () => {
  expect(prettyJson('{"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}');
  expect(prettyJson('{"a":')).toBe('{"a":');
});

it('bytes are digits and letters', () => {
  expect(hexLines(bytes('ERA\n'))).toEqual([`000000  45 52 41 0a${' '.repeat(36)}  ERA·`]);
  expect(hexLines(new Uint8Array(100), 2)).toHaveLength(2);
});
