import { describe, expect, it } from 'vitest';
import type { Node } from '../../api/types';
import { amount, counted, found, grouped, share, standing, step, strip, use } from './fleet';

function node(name: string, more: Partial<Node> = {}): Node {
  return {
    id: 0, name, pool: 'p', domain: null, rack: null, labels: {}, health: 'up', capacity: { cpu: '8', memory: '16Gi' },
    allocated: { cpu: '0', memory: '0Gi' }, gpus: [], jobs: [], maintenance: [], simulated: false, ...more,
  };
}
const gpu = (index: number, allocated: number) => ({ index, model: 'h100', memory: '80Gi', allocated, jobs: [] });

describe('amounts', () => {
  it('are read as resources are written', () => {
    expect([amount('64'), amount('500m'), amount('22900Mi'), amount('0.5'), amount('0Gi')]).toEqual([64, 0.5, 22900 * 2 ** 20, 0.5, 0]);
    expect([amount(undefined), amount('many'), amount('5Zi')]).toEqual([0, 0, 0]);
  });
  it('give a share of what a node has, and 0 of what it has not', () => {
    const half = node('a', { allocated: { cpu: '500m', memory: '8Gi' } });
    expect(share(half, 'memory')).toBe(0.5);
    expect(share(half, 'cpu')).toBe(0.0625);
    expect(share(half, 'gpu')).toBe(0);
  });
  it('of GPUs colour a node that has any, else its cores', () => {
    expect(use(node('a', { allocated: { cpu: '4', memory: '0Gi' } }))).toBe(0.5);
    const capacity = { cpu: '8', memory: '16Gi', gpu: '2' };
    expect(use(node('a', { capacity, gpus: [gpu(0, 1), gpu(1, 0)], allocated: { cpu: '8', memory: '0Gi', gpu: '1' } }))).toBe(0.5);
    expect([0, 0.1, 0.5, 0.8, 1].map(step)).toEqual([0, 1, 2, 3, 4]);
  });
});

describe('how a node stands', () => {
  const window = { from: '2026-01-01T10:00:00Z', to: '2026-01-01T12:00:00Z' };
  it('is maintenance from its first moment until before its last', () => {
    expect(standing(node('c', { health: 'cordoned' }), 0)).toBe('cordoned');
    const away = node('a', { maintenance: [window], health: 'draining' });
    expect(standing(away, Date.parse(window.from) - 1)).toBe('draining');
    expect(standing(away, Date.parse(window.from))).toBe('maintenance');
    expect(standing(away, Date.parse(window.to))).toBe('draining');
    expect(standing(node('a', { health: 'lost', maintenance: [window] }), Date.parse(window.from))).toBe('lost');
  });
  it('is counted, with GPUs that are shared', () => {
    const counts = counted([node('a', { gpus: [gpu(0, 0.5), gpu(1, 1.2)] }), node('b', { health: 'lost' })], 0);
    expect(counts).toMatchObject({ nodes: 2, up: 1, lost: 1, gpus: 2, gpusUsed: 1.5, cores: 16, coresUsed: 0 });
  });
});

describe('groups', () => {
  it('stand by name with numbers as numbers, and those in none last', () => {
    const nodes = [node('n10', { domain: 'b' }), node('n9', { domain: 'b' }), node('x'), node('y', { domain: 'a', labels: { rack: 'r1' } })];
    expect(grouped(nodes, 'domain').map(({ name, nodes: inside }) => [name, inside.map((one) => one.name)])).toEqual([
      ['a', ['y']], ['b', ['n9', 'n10']], ['', ['x']],
    ]);
    expect(grouped(nodes, 'rack').map(({ name }) => name)).toEqual(['r1', '']);
  });
  it('are searched by node, place, model and job', () => {
    const nodes = [node('gpu-1', { jobs: [7] }), node('gpu-2', { pool: 'q', gpus: [gpu(0, 0)] }), node('cpu', { labels: { rack: 'R7' } })];
    const names = (typed: string, pool?: string) => found(nodes, typed, pool, (job) => (job === 7 ? 'ResNet' : undefined)).map((one) => one.name);
    expect(names('GPU')).toEqual(['gpu-1', 'gpu-2']);
    expect(names('gpu', 'q')).toEqual(['gpu-2']);
    expect(names('resnet')).toEqual(['gpu-1']);
    expect(names('#7')).toEqual(['gpu-1']);
    expect(names('r7')).toEqual(['cpu']);
    expect(names('h100')).toEqual(['gpu-2']);
  });
});

it('a strip has a cell for each GPU, from edge to edge, filled by its share', () => {
  const cells = strip([0, 0.5, 2]).split('no-repeat, ');
  expect(cells).toHaveLength(3);
  expect(cells[0]).toContain('var(--used) 0%');
  expect(cells[1]).toMatch(/var\(--used\) 50%.* 50% 0 \//);
  expect(cells[2]).toMatch(/var\(--used\) 100%.* 100% 0 \//);
});
