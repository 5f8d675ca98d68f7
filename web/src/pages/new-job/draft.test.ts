import { describe, expect, it } from 'vitest';
import { BLANK, commandLine, commandWords, draftOf, jobOf, needsShell, quoteAskOf, taking, type Draft } from './draft';

const draft = (changes: Partial<Draft>): Draft => ({ ...BLANK, ...changes });
const askOf = (given: Draft) => jobOf(given).ask;

describe('a draft', () => {
  it('that is blank says nothing but that it takes the price', () => {
    expect(jobOf(BLANK)).toEqual({ work: { command: [] }, ask: { resources: {} }, accept_price: true });
    expect(jobOf({ ...BLANK, promise: false })).toEqual({ work: { command: [] }, ask: { resources: {} } });
  });

  it('is sent as it was written: the server reads it', () => {
    const written = draft({ cpu: 'lots', time: '2h30m', replicas: '4..2', value: '-3' });
    expect(jobOf(written)).toMatchObject({ ask: { resources: { cpu: 'lots' }, duration_s: '2h30m', replicas: '4..2' }, value: '-3' });
    const queued = draft({ promise: false, array: '0-99:2%10', after: '12, 13:any', project: '语言 模型' });
    expect(jobOf(queued)).toMatchObject({ project: '语言 模型', array: '0-99:2%10', after: '12, 13:any' });
  });

  it('in a queue has no window and no value, and one with a promise no queue', () => {
    const both = draft({ by: '2030-01-01T00:00', value: '3', queue: 'night', array: '0-9', after: '12', more: { most: '12.5' } });
    const queued = jobOf({ ...both, promise: false });
    expect(queued).toMatchObject({ queue: 'night', array: '0-9', after: '12' });
    for (const key of ['value', 'most', 'accept_price']) expect(queued).not.toHaveProperty(key);
    expect(queued.ask).not.toHaveProperty('deadline');
    const promised = jobOf(both);
    expect(promised).toMatchObject({ value: '3', most: '12.5', ask: { deadline: new Date('2030-01-01T00:00').toISOString() } });
    for (const key of ['queue', 'array', 'after']) expect(promised).not.toHaveProperty(key);
    // Nobody has chosen: all that is said is sent.
    expect(jobOf({ ...both, promise: null })).toMatchObject({ value: '3', most: '12.5', queue: 'night' });
  });

  it('asks for a price on the terms of the job, and takes what was held without them', () => {
    const limited = jobOf(draft({ command: 'true', more: { most: '12.5' } }));
    expect(quoteAskOf(limited)).toEqual({ ask: { resources: {} }, most: '12.5', accept_price: true });
    const valued = jobOf(draft({ command: 'true', value: '30', more: { most: '12.5' } }));
    expect(quoteAskOf(valued)).toEqual({ ask: { resources: {} }, value: '30', most: '12.5' });
    expect(taking(valued, 7)).toEqual({ work: { command: ['true'] }, ask: { resources: {} }, hold: 7 });
    const steps = draft({ more: { value: [{ by: '2030-01-01T00:00', worth: 3 }] } });
    expect(jobOf(steps)).toMatchObject({ value: [{ by: new Date('2030-01-01T00:00').toISOString(), worth: '3' }] });
    expect(jobOf(steps)).not.toHaveProperty('accept_price');
  });

  it('leaves it to the server what is not said', () => {
    expect(askOf(draft({ cpu: '', memory: '' })).resources).toEqual({});
    expect(askOf(draft({ cpu: '', memory: '', gpu: '1' })).resources).toEqual({ gpu: '1' });
  });

  it('asks for no GPU where none or 0 is written', () => {
    expect(askOf(draft({ gpu: '0' })).resources).not.toHaveProperty('gpu');
    expect(askOf(draft({ gpu: '2', gpuModel: 'h100' })).resources).toMatchObject({ gpu: '2', 'gpu.model': 'h100' });
  });

  it('of a job that is handed in again is what the server says: a promise without a worth, and no minute less than there is', () => {
    const job = { work: { command: ['true'] }, ask: { resources: {}, duration_s: 60 } };
    const again = draftOf({ ...job, ask: { ...job.ask, deadline: '2030-01-01T00:00:01Z' } }, true);
    expect(again).toMatchObject({ promise: true, value: '', from: '' });
    expect(Date.parse(again.by)).toBeGreaterThanOrEqual(Date.parse('2030-01-01T00:00:01Z'));
    expect(draftOf({ ...job, array: { from: 0, to: 99, step: 2, limit: 10 }, after: [{ job: 12 }] }, false)).toMatchObject({ promise: false, array: '0-99:2%10', after: '', time: '1m' });
  });

  it('becomes a job and comes back from it', () => {
    const written = draft({
      name: 'sweep', command: "python train.py --name 'a b'", gpu: '0.5', cpu: '4', memory: '16Gi', replicas: '2..8', time: '2h30m',
      pool: 'training', inputs: [{ data: 'ada/mnist', path: 'data' }], env: { SEED: '1' }, image: 'torch', preemptible: true,
      more: { priority: 3, constraints: { spread: true }, secrets: ['KEY'], terminal: true }, otherResources: { 'gpu.memory': '40Gi' },
    });
    // The server reads the texts, and gives back what they mean.
    const read = { ...jobOf(written), value: '30' };
    const job = { ...read, ask: { ...read.ask, duration_s: 9000, replicas: { min: 2, max: 8 } } };
    expect(draftOf(job, true)).toEqual({ ...written, value: '30' });
    expect(draftOf(job, false).promise).toBe(false);
  });
});

describe('a command', () => {
  it('is cut into words as a shell cuts it', () => {
    expect(commandWords(`python train.py --name 'a b' "c \\"d\\"" e\\ f`)).toEqual(['python', 'train.py', '--name', 'a b', 'c "d"', 'e f']);
    expect(commandWords("''")).toEqual(['']);
    expect(commandWords('  ')).toEqual([]);
  });

  it('is written so that it reads back', () => {
    for (const words of [['a b', "it's", '', '$x', '-c'], ['python', 'x=1']]) expect(commandWords(commandLine(words))).toEqual(words);
  });

  it('keeps what is quoted from the shell, and needs one for what only a shell reads', () => {
    for (const line of ['a | b', 'a $HOME', 'a "$HOME"', 'cd x', 'SEED=1 python train.py', 'ls *.py', 'a # b', '(a)', 'cat ~/x']) expect(needsShell(line), line).toBe(true);
    for (const line of ['python -c \'print("$x") | y\'', 'python train.py --lr=0.1', 'a "b; c"', '/bin/cdx', '']) expect(needsShell(line), line).toBe(false);
    expect(commandWords('"a\\n\\"b"')).toEqual(['a\\n"b']);
  });

  it('that needs a shell gets one', () => {
    expect(jobOf(draft({ command: 'make && ./run > log' })).work.command).toEqual(['sh', '-c', 'make && ./run > log']);
    expect(jobOf(draft({ command: 'python train.py' })).work.command).toEqual(['python', 'train.py']);
  });
});
