import { expect, it } from 'vitest';
import { quantity } from './quantity';
import { nearness, quotaLines, quotaOf, textsOf, type QuotaUse } from './quotas';

const used: QuotaUse = { cpu: '500m', memory: '32Gi', gpu: '2', cpu_hours: 1, memory_hours: 0, gpu_hours: 500, credits: '169.61', storage_bytes: 10 };

it('amounts are read as Kubernetes writes them', () => {
  for (const [text, is] of [['500m', 0.5], ['64Gi', 64 * 2 ** 30], ['64GiB', 64 * 2 ** 30], ['64GB', 64e9], ['0.5', 0.5], ['2k', 2000], ['0Gi', 0]] as const) expect(quantity(text), text).toBe(is);
  for (const text of ['', 'many', '-1', '1.2.3', '5Xi', undefined]) expect(quantity(text)).toBeUndefined();
});

it('of each limit it is known what is left, and of none nothing', () => {
  const lines = quotaLines({ gpu: '16', gpu_hours: 400, credits: '5000.00' }, used);
  const of = (limit: string) => lines.find((line) => line.limit === limit);
  expect(of('gpu')).toEqual({ limit: 'gpu', used: 2, most: 16, left: 14 });
  expect(of('gpu_hours')).toMatchObject({ left: 0 });
  expect(of('cpu')).toEqual({ limit: 'cpu', used: 0.5, most: undefined, left: undefined });
  expect(lines.map((line) => nearness(line))).toEqual(['accent', 'accent', 'accent', 'bad', 'accent', 'accent', 'accent', 'accent']);
});

it('a quota survives its form, and an empty box is no limit', () => {
  const quota = { cpu: '16', gpu_hours: 400, credits: '12.50', storage_bytes: 5 * 2 ** 30 };
  expect(quotaOf(textsOf(quota))).toEqual(quota);
  expect(quotaOf(textsOf({}))).toEqual({});
});
