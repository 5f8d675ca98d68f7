import { expect, it } from 'vitest';
import { outputAddress } from './outputs';

it('an address keeps what a name has', () => {
  expect(outputAddress(7, 'a b/%#?.txt')).toBe('/api/v1/jobs/7/outputs/a%20b/%25%23%3F.txt');
});
