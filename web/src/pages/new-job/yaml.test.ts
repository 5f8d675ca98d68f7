import { describe, expect, it } from 'vitest';
import { BLANK, type Draft } from './draft';
import { fromYaml, toYaml } from './yaml';

const full: Draft = {
  ...BLANK,
  name: 'sweep', command: "python train.py --name 'a b'", env: { SEED: '1' }, inputs: [{ data: 'mnist', path: '' }, { data: 'ada/c', path: 'c' }],
  image: 'torch', gpu: '2', gpuModel: 'h100', cpu: '8', memory: '64Gi', replicas: '2..8', time: '2h', by: '2026-11-20T18:00', value: '30',
  pool: 'training', preemptible: true, more: { priority: 3, constraints: { spread: true } }, otherResources: { 'gpu.memory': '40Gi' },
};

describe('YAML', () => {
  it('says the whole draft and reads back', () => {
    expect(fromYaml(toYaml(full), '').draft).toEqual(full);
    const many = { ...BLANK, promise: false, queue: 'night', project: 'thesis', array: '0-99:2%10', after: '12, 13:any' };
    expect(toYaml(many)).toContain('after:\n  - 12\n  - 13:any');
    expect(fromYaml(toYaml(many), '').draft).toEqual(many);
    expect(fromYaml(toYaml({ ...BLANK, promise: false, queue: 'night' }), '').draft).toEqual({ ...BLANK, promise: false, queue: 'night' });
  });

  it('keeps a line for the shell as a line', () => {
    const draft = { ...BLANK, command: 'make && ./run' };
    expect(toYaml(draft)).toContain('command: make && ./run');
    expect(fromYaml(toYaml(draft), '').draft).toEqual(draft);
  });

  it('keeps what the form has no control for', () => {
    const text = 'command: [true]\ntime: 1h\noverrun: stop\nattributes:\n  field: vision\n';
    const read = fromYaml(text, 'abc').draft;
    expect(read?.more).toEqual({ overrun: 'stop', attributes: { field: 'vision' } });
    expect(read?.code).toBe('abc');
    expect(fromYaml(toYaml(read as Draft), 'abc').draft).toEqual(read);
  });

  it('tells a mistake with its place', () => {
    expect(fromYaml('command: [true]\ntimes: 1h\n', '').mistake).toEqual({ line: 2, column: 1, code: 'key', given: 'times' });
    expect(fromYaml('command: "x\n', '').mistake).toMatchObject({ code: 'syntax', given: 'MISSING_CHAR' });
    expect(fromYaml('- a\n', '').mistake?.code).toBe('map');
    expect(fromYaml('command: [true]\nby: soon\n', '').mistake).toMatchObject({ line: 2, column: 5 });
    expect(fromYaml('time: [1, 2]\n', '').mistake).toMatchObject({ line: 1 });
    expect(fromYaml('queue: a\narray: 9-1\n', '').mistake).toMatchObject({ line: 2, column: 8 });
    expect(fromYaml('after: [x]\n', '').mistake).toMatchObject({ line: 1, column: 8 });
  });

  it('is not made huge by a small text', () => {
    const bomb = 'name: &a [x]\nenv: {a: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a], b: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b], c: [*c,*c,*c,*c,*c,*c,*c,*c]}\n';
    expect(fromYaml(bomb, '').mistake).toBeDefined();
  });
});
