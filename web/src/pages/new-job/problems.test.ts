import { expect, it } from 'vitest';
import type { Problem } from '../../api/problem';
import { placed } from './problems';

const problem = (field: string, parameters: Record<string, unknown> = {}): Problem =>
  ({ type: 'urn:era:bad_field', title: 'bad field', status: 422, detail: `about ${field}`, code: 'bad_field', field, parameters }) as Problem;

it('each problem stands at the control that it is about, and what has none beside them', () => {
  const all = placed([problem('resources', { key: 'memory' }), problem('resources', { problem: 'broken_gpu', text: '1.5' }), problem('ask.duration_s'), problem('window'), problem('each'), problem('ask.replicas'), problem('replicas')]);
  expect(Object.keys(all.at).sort()).toEqual(['by', 'gpu', 'memory', 'replicas', 'time']);
  expect(all.others.map(({ field }) => field)).toEqual(['each', 'replicas']);
  expect(all).toMatchObject({ unpriced: true, unfit: true, noCommand: false });
});

it('a command that is not said yet is no mistake, and what is run has no price', () => {
  const blank = placed([problem('work.command', { problem: 'no_command' })]);
  expect(blank).toEqual({ at: {}, others: [], unpriced: false, unfit: true, noCommand: true });
  expect(placed([problem('work.command', { problem: 'zero_byte' })])).toMatchObject({ unpriced: false, unfit: true, noCommand: false });
  expect(placed([])).toEqual({ at: {}, others: [], unpriced: false, unfit: false, noCommand: false });
});
