import { expect, it } from 'vitest';
import type { JobSummary } from '../api';
import { jobsNamed } from './search';

const job = (id: number, name: string | null) => ({ id, name }) as JobSummary;

it('jobs whose name begins so come before those that contain it, each once and only a few', () => {
  const begins = [job(9, 'resnet-b'), job(4, 'resnet-a')];
  const recent = [job(12, 'Train-ResNet'), job(11, null), job(10, 'bert'), job(9, 'resnet-b')];
  expect(jobsNamed('resnet', begins, recent).map(({ id }) => id)).toEqual([9, 4, 12]);
  expect(jobsNamed('resnet', [], Array.from({ length: 40 }, (_, id) => job(id, 'a-resnet')))).toHaveLength(5);
});
