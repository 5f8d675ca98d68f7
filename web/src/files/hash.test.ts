import { expect, it } from 'vitest';
import { hashOf } from './hash';

it('a content has the hash that the server knows it by', async () => {
  // The first lines of BLAKE3's own test vectors.
  expect(await hashOf(new Blob([]))).toBe('af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262');
  const long = new Uint8Array((1 << 20) * 2 + 5).map((_, index) => index % 251);
  const pieces: number[] = [];
  const hash = await hashOf(new Blob([long]), (bytes) => pieces.push(bytes));
  expect(hash).toMatch(/^[0-9a-f]{64}$/);
  expect(pieces).toEqual([1 << 20, 2 << 20, (2 << 20) + 5]);
});
