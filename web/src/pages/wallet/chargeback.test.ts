import { expect, it } from 'vitest';
import type { User } from '../../accounts/everyone';
import { chargeback } from './chargeback';

const user = (name: string, group: string, credits: string, gpu_hours = 1): User =>
  ({ name, group, used: { cpu: '0', memory: '0', gpu: '0', cpu_hours: 2, memory_hours: 3, gpu_hours, credits, storage_bytes: 5 } }) as User;

it('groups come with their sums, the dearest first, and so do their accounts', () => {
  const lines = chargeback([user('a', 'x', '1.50'), user('b', 'y', '7.00'), user('c', 'x', '2.50', 4)]);
  expect(lines.map(({ group, user: name, credits }) => [group, name, credits])).toEqual([
    ['y', undefined, 7],
    ['y', 'b', 7],
    ['x', undefined, 4],
    ['x', 'c', 2.5],
    ['x', 'a', 1.5],
  ]);
  expect(lines[2]).toMatchObject({ gpuHours: 5, cpuHours: 4, memoryHours: 6, bytes: 10 });
});

it('nobody owes nothing', () => {
  expect(chargeback([])).toEqual([]);
});
