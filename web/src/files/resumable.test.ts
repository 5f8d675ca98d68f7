import { expect, it } from 'vitest';
import { ProblemError } from '../api/problem';
import { nextPiece, passes } from './resumable';

it('pieces follow one another from wherever it stopped, to the last byte', () => {
  const seen: string[] = [];
  let offset = 3;
  for (let piece = nextPiece(offset, 20, 8); piece; piece = nextPiece(offset, 20, 8)) {
    expect(piece.from).toBe(offset);
    seen.push(piece.range ?? '');
    offset = piece.to;
  }
  expect(seen).toEqual(['bytes 3-10/20', 'bytes 11-18/20', 'bytes 19-19/20']);
  expect(offset).toBe(20);
});

it('an empty file is one empty piece without a range, which no range can say', () => {
  expect(nextPiece(0, 0)).toEqual({ from: 0, to: 0, range: undefined });
  expect(nextPiece(5, 5)).toBeUndefined();
});

it('a cut line is tried again, a refusal is not', () => {
  const problem = (status: number, code = 'x') => new ProblemError({ type: '', title: '', status, detail: '', code });
  for (const [status, code] of [[0, 'unreachable'], [503, 'stopping'], [429, 'busy'], [400, 'broken_off'], [409, 'upload_busy'], [409, 'wrong_offset']] as const) expect(passes(problem(status, code))).toBe(true);
  for (const status of [400, 403, 404, 409, 413, 422, 507]) expect(passes(problem(status))).toBe(false);
});
