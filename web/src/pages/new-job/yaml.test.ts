import { describe, expect, it } from 'vitest';
import { BLANK, jobOf, type Draft } from './draft';
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
    expect(fromYaml(toYaml(full), NONE).draft).toEqual({ ...full, promise: null });
    const many = { ...BLANK, promise: false, queue: 'night', project: 'thesis', array: '0-99:2%10', after: '12, 13:any' };
    expect(toYaml(many)).toContain('after: 12, 13:any');
    expect(fromYaml(toYaml(many), NONE).draft).toEqual({ ...many, promise: null });
    expect(fromYaml('after: [12, "13:any"]\n', NONE).draft?.after).toBe('12, 13:any');
  });

  it('keeps a line for the shell as a line', () => {
    const draft = { ...BLANK, promise: null, command: 'make && ./run' };
    expect(toYaml(draft)).toContain('command: make && ./run');
    expect(fromYaml(toYaml(draft), NONE).draft).toEqual(draft);
  });

  it('keeps what the form has no control for', () => {
    const text = 'command: [true]\ntime: 1h\noverrun: stop\nattributes:\n  field: vision\n';
    const read = fromYaml(text, { code: 'abc' }).draft;
    expect(read?.more).toEqual({ overrun: 'stop', attributes: { field: 'vision' } });
    expect(read?.code).toBe('abc');
    expect(fromYaml(toYaml(read as Draft), { code: 'abc' }).draft).toEqual(read);
    const secret = { ...BLANK, promise: null, more: { terminal: true, secrets: ['WANDB_API_KEY'] } };
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

  it('leaves it to the server whether it is a bid, and takes a beginning alone as the command line does', () => {
    expect(fromYaml('command: [true]\n', NONE).draft).toMatchObject({ promise: null, cpu: '', memory: '', time: '' });
    const sent = (text: string) => jobOf(fromYaml(`command: [true]\n${text}\n`, NONE).draft ?? BLANK);
    expect(sent('from: 2030-01-01T00:00').accept_price).toBe(true);
    expect(sent('from: 2030-01-01T00:00\nvalue: 3')).not.toHaveProperty('accept_price');
    expect(sent('accept_price: true\nmost: 3')).toMatchObject({ accept_price: true, most: '3' });
    // What contradicts itself is sent as it is: the server says so.
    expect(sent('value: 3\nqueue: night')).toMatchObject({ value: '3', queue: 'night' });
    expect(sent('array: 9-1\nafter: [x, 13:any]\nmost: lots')).toMatchObject({ array: '9-1', after: 'x, 13:any', most: 'lots' });
    expect(fromYaml('accept_price: yes\n', NONE).mistake).toMatchObject({ code: 'flag', given: 'accept_price' });
  });

  it('says that it takes the price where nobody says what a promise is worth', () => {
    const plain = { ...BLANK, command: 'true' };
    expect(toYaml(plain)).toContain('accept_price: true');
    expect(jobOf(fromYaml(toYaml(plain), NONE).draft ?? BLANK)).toEqual(jobOf(plain));
    expect(toYaml({ ...plain, value: '30' })).not.toContain('accept_price');
    expect(toYaml({ ...plain, promise: false, more: { most: '3', accept_price: true } })).not.toMatch(/most|accept_price/);
  });

  it('tells that a page cannot read the folder of code, unless one was dropped', () => {
    expect(fromYaml('code: src\n', NONE).note).toBe('code');
    expect(fromYaml('code: none\n', NONE).note).toBeUndefined();
    const dropped = { ...BLANK, code: 'abc', promise: null };
    expect(fromYaml(toYaml(dropped), { code: 'abc' })).toEqual({ draft: dropped, note: undefined });
  });

  it('tells a mistake with its place', () => {
    expect(fromYaml('command: [true]\ntimes: 1h\n', NONE).mistake).toEqual({ line: 2, column: 1, code: 'key', given: 'times' });
    expect(fromYaml('command: "x\n', NONE).mistake).toMatchObject({ code: 'syntax', given: 'MISSING_CHAR' });
    expect(fromYaml('- a\n', NONE).mistake?.code).toBe('map');
    expect(fromYaml('command: [true]\nby: soon\n', NONE).mistake).toMatchObject({ line: 2, column: 5 });
    expect(fromYaml('time: [1, 2]\n', NONE).mistake).toMatchObject({ line: 1 });
  });

  it('is not made huge by a small text', () => {
    const bomb = 'name: &a [x]\nenv: {a: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a], b: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b], c: [*c,*c,*c,*c,*c,*c,*c,*c]}\n';
    expect(fromYaml(bomb, NONE).mistake).toBeDefined();
  });
});
