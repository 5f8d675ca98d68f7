import { expect, it } from 'vitest';
import { creditsAlikeIn } from '../../text/format';
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
  const rows = parameterRows([job('1'), job('2', { SEED: '1' })], () => String);
  expect(rows.filter(({ differs }) => differs).map(({ name, values }) => [name, ...values])).toEqual([
    ['ask.resources.gpu', '1', '2'],
    ['work.env.SEED', '', '1'],
  ]);
  expect(rows.at(-1)?.differs).toBe(false);
});

it('what was offered is written as credits are, all of a row alike', () => {
  const job = (value: unknown, most?: string) => ({ spec: { value, most, work: { command: ['x'], env: { value: '6.063241' } }, ask: {} } }) as unknown as Job;
  const steps = [{ by: '2030-01-01T00:00:00Z', worth: '6.063241' }];
  const rows = parameterRows([job('6.063241', '7.5'), job(steps)], (amounts) => creditsAlikeIn('en', amounts));
  const shown = new Map(rows.map((row) => [row.name, row.shown]));
  expect(shown.get('value')).toEqual(['6.06', '{"by":"2030-01-01T00:00:00Z","worth":"6.06"}']);
  expect(shown.get('most')).toEqual(['7.50', '']);
  // As it was handed in, where it is no amount of ours.
  expect(shown.get('work.env.value')).toEqual(['6.063241', '6.063241']);
  expect(rows.find(({ name }) => name === 'most')?.values).toEqual(['7.5', '']);
});

it('values are named by their place', () => {
  expect(flat({ a: { b: 1, c: null }, d: ['x', 'y'] })).toEqual([['a.b', '1'], ['d', 'x y']]);
});
