import { expect, it } from 'vitest';
import { needs } from './needs';

const words = { gpus: (count: string) => `${count} GPUs`, cores: (count: string) => `${count} cores`, times: (count: string) => `× ${count}` };

it('resources are told in a few words', () => {
  expect(needs({ resources: { gpu: '8', 'gpu.model': 'h100', cpu: '64', memory: '512Gi' }, replicas: 2 }, words)).toBe('8 GPUs h100, 64 cores, 512 GiB × 2');
  expect(needs({ resources: { cpu: '500m', memory: '128Mi' }, replicas: 1 }, words)).toBe('0.5 cores, 128 MiB');
  expect(needs({ resources: { gpu: '0', cpu: 'odd' }, replicas: 1 }, words)).toBe('odd cores');
});
