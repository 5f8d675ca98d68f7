import { describe, expect, it } from 'vitest';
import { BLANK, type Draft } from './draft';
import { fromYaml, toYaml } from './yaml';

const NONE = { code: '' };
const full: Draft = {
  ...BLANK,
  name: 'sweep', command: "python train.py --name 'a b'", env: { SEED: '1' }, inputs: [{ data: 'mnist', path: '' }, { data: 'ada/c', path: 'c' }],
  image: 'torch', gpu: '2', gpuModel: 'h100', cpu: '8', memory: '64Gi', replicas: '2..8', time: '2h', by: '2026-11-20T18:00', value: '30',
  pool: 'training', preemptible: true, more: { priority: 3, constraints: { spread: true } }, otherResources: { 'gpu.memory': '40Gi' },
};

describe('YAML', () => {
  it('says the whole draft and reads back', () => {
    expect(fromYaml(toYaml(full), NONE).draft).toEqual(full);
    const many = { ...BLANK, promise: false, queue: 'night', project: 'thesis', array: '0-99:2%10', after: '12, 13:any' };
    expect(toYaml(many)).toContain('after:\n  - 12\n  - 13:any');
    expect(fromYaml(toYaml(many), NONE).draft).toEqual(many);
    expect(fromYaml(toYaml({ ...BLANK, promise: false, queue: 'night' }), NONE).draft).toEqual({ ...BLANK, promise: false, queue: 'night' });
  });

  it('keeps a line for the shell as a line', () => {
    const draft = { ...BLANK, promise: false, command: 'make && ./run' };
    expect(toYaml(draft)).toContain('command: make && ./run');
    expect(fromYaml(toYaml(draft), NONE).draft).toEqual(draft);
  });

  it('keeps what the form has no control for', () => {
    const text = 'command: [true]\ntime: 1h\noverrun: stop\nattributes:\n  field: vision\n';
    const read = fromYaml(text, { code: 'abc' }).draft;
    expect(read?.more).toEqual({ overrun: 'stop', attributes: { field: 'vision' } });
    expect(read?.code).toBe('abc');
    expect(fromYaml(toYaml(read as Draft), { code: 'abc' }).draft).toEqual(read);
    const secret = { ...BLANK, promise: false, more: { terminal: true, secrets: ['WANDB_API_KEY'] } };
    expect(fromYaml(toYaml(secret), NONE).draft).toEqual(secret);
  });

  it('takes one alone where a list may be, as `era submit` does', () => {
    const alone = fromYaml('secrets: KEY\ninputs: imagenet\nafter: 12\n', NONE).draft;
    expect(alone).toEqual(fromYaml('secrets: [KEY]\ninputs: [imagenet]\nafter: [12]\n', NONE).draft);
    expect(alone).toMatchObject({ more: { secrets: ['KEY'] }, inputs: [{ data: 'imagenet', path: '' }], after: '12' });
    expect(fromYaml('inputs: {data: c, path: d}\n', NONE).draft?.inputs).toEqual([{ data: 'c', path: 'd' }]);
    expect(fromYaml('inputs: 3\n', NONE).mistake).toMatchObject({ line: 1, code: 'list' });
    expect(fromYaml('terminal: yes\n', NONE).mistake).toMatchObject({ line: 1, code: 'flag', given: 'terminal' });
    expect(fromYaml('preemptible: true\nterminal:\n', NONE).draft?.preemptible).toBe(true);
    expect(fromYaml('secrets: [[a]]\n', NONE).mistake).toMatchObject({ line: 1, code: 'value' });
  });

  it('is a bid for a promise where `era submit` would read one, and only there', () => {
    expect(fromYaml('command: [true]\n', NONE).draft).toMatchObject({ promise: false, cpu: '', memory: '', time: '1h' });
    for (const key of ['value: 3', 'most: 3', 'accept_price: true', 'from: 2030-01-01T00:00', 'by: 2030-01-01T00:00', 'value:\n  - {by: 2030-01-01T00:00, worth: 3}']) {
      expect(fromYaml(`command: [true]\n${key}\n`, NONE).draft?.promise, key).toBe(true);
    }
    expect(toYaml({ ...BLANK, promise: false, more: { accept_price: true } })).not.toContain('accept_price');
    expect(fromYaml('accept_price: false\nqueue: night\n', NONE).draft?.promise).toBe(false);
    expect(fromYaml('value: 3\nqueue: night\n', NONE).mistake).toMatchObject({ line: 2, code: 'both', given: 'queue, value' });
    expect(fromYaml('gpus: 3\nreplicas: 2\n', NONE).mistake).toMatchObject({ line: 1, code: 'both' });
    expect(fromYaml('most: lots\n', NONE).mistake).toMatchObject({ line: 1, code: 'amount' });
  });

  it('says the price of now where nothing else makes it a bid, and takes that for no limit of the reader’s', () => {
    const plain = { ...BLANK, command: 'true' };
    const text = toYaml(plain, '12.34');
    expect(text).toContain('most: "12.34"');
    expect(fromYaml(text, { code: '', price: '12.34' }).draft).toEqual(plain);
    expect(fromYaml(text, NONE).draft).toEqual({ ...plain, more: { most: '12.34' } });
    expect(toYaml({ ...plain, value: '30' }, '12.34')).not.toContain('most');
    expect(toYaml({ ...plain, promise: false, more: { most: '3' } }, '12.34')).not.toContain('most');
    // Before there is a price the text cannot say it; the page still knows.
    expect(fromYaml(toYaml(plain), { code: '', unpriced: true }).draft).toEqual(plain);
  });

  it('tells that a page cannot read the folder of code, unless one was dropped', () => {
    expect(fromYaml('code: src\n', NONE).note).toBe('code');
    expect(fromYaml('code: none\n', NONE).note).toBeUndefined();
    const dropped = { ...BLANK, code: 'abc', promise: false };
    expect(fromYaml(toYaml(dropped), { code: 'abc' })).toEqual({ draft: dropped, note: undefined });
  });

  it('tells a mistake with its place', () => {
    expect(fromYaml('command: [true]\ntimes: 1h\n', NONE).mistake).toEqual({ line: 2, column: 1, code: 'key', given: 'times' });
    expect(fromYaml('command: "x\n', NONE).mistake).toMatchObject({ code: 'syntax', given: 'MISSING_CHAR' });
    expect(fromYaml('- a\n', NONE).mistake?.code).toBe('map');
    expect(fromYaml('command: [true]\nby: soon\n', NONE).mistake).toMatchObject({ line: 2, column: 5 });
    expect(fromYaml('time: [1, 2]\n', NONE).mistake).toMatchObject({ line: 1 });
    expect(fromYaml('queue: a\narray: 9-1\n', NONE).mistake).toMatchObject({ line: 2, column: 8 });
    expect(fromYaml('after: [x]\n', NONE).mistake).toMatchObject({ line: 1, column: 8 });
  });

  it('is not made huge by a small text', () => {
    const bomb = 'name: &a [x]\nenv: {a: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a], b: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b], c: [*c,*c,*c,*c,*c,*c,*c,*c]}\n';
    expect(fromYaml(bomb, NONE).mistake).toBeDefined();
  });
});
