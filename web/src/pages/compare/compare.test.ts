import { expect, it } from 'vitest';
import type { Job } from '../../api/types';
import { argumentsOf, chosen, flat, parameterRows } from './compare';

it('an address names jobs once, and no more than fit', () => {
  expect(chosen('7,8,7,x,-1,9', 2)).toEqual([7, 8]);
  expect(chosen(null, 8)).toEqual([]);
});

it('arguments of a command are parameters', () => {
  expect(argumentsOf(['python', 'train.py', '--rate', '0.1', '--deep', '--seed=3'])).toEqual([['--rate', '0.1'], ['--deep', 'yes'], ['--seed', '3']]);
});

it('what differs comes first, and what one lacks is empty', () => {
  const job = (gpu: string, env?: Record<string, string>) =>
    ({ spec: { work: { command: ['x'], ...(env && { env }) }, ask: { resources: { gpu }, duration_s: 60 } } }) as unknown as Job;
  const rows = parameterRows([job('1'), job('2', { SEED: '1' })]);
  expect(rows.filter(({ differs }) => differs).map(({ name, values }) => [name, ...values])).toEqual([
    ['ask.resources.gpu', '1', '2'],
    ['work.env.SEED', '', '1'],
  ]);
  expect(rows.at(-1)?.differs).toBe(false);
});

it('values are named by their place', () => {
  expect(flat({ a: { b: 1, c: null }, d: ['x', 'y'] })).toEqual([['a.b', '1'], ['d', 'x y']]);
});
