import { expect, it } from 'vitest';
import type { JobSummary } from '../api';
import { jobsNamed, spellings } from './search';

const job = (id: number, name: string | null) => ({ id, name }) as JobSummary;

it('jobs whose name begins so come before those that contain it, each once and only a few', () => {
  const begins = [job(9, 'resnet-b'), job(4, 'resnet-a')];
  const recent = [job(12, 'Train-ResNet'), job(11, null), job(10, 'bert'), job(9, 'resnet-b')];
  expect(jobsNamed('resnet', begins, recent).map(({ id }) => id)).toEqual([9, 4, 12]);
  expect(jobsNamed('resnet', [...begins, job(7, 'ResNet-c')].reverse(), []).map(({ id }) => id)).toEqual([9, 7, 4]);
  expect(jobsNamed('resnet', [], Array.from({ length: 40 }, (_, id) => job(id, 'a-resnet')))).toHaveLength(5);
});

it('a beginning is asked for as names are usually written, each spelling once', () => {
  expect(spellings('resNet')).toEqual(['resNet', 'resnet', 'Resnet', 'RESNET']);
  expect(spellings('a')).toEqual(['a', 'A']);
  expect(spellings('猫')).toEqual(['猫']);
});
