import { describe, expect, it } from 'vitest';
import { askOf, BLANK, commandLine, commandWords, draftOf, isBid, jobOf, needsShell, quoteAskOf, readAfter, readArray, readReplicas, wrongIn, type Draft } from './draft';

const draft = (changes: Partial<Draft>): Draft => ({ ...BLANK, ...changes });
const NOW = Date.parse('2026-11-15T12:00:00Z');

describe('a draft', () => {
  it('that is blank can be priced', () => {
    expect(wrongIn(BLANK, NOW)).toEqual({});
    expect(askOf(BLANK)).toEqual({ resources: { cpu: '1', memory: '1Gi' }, duration_s: 3600 });
  });

  it('says what is wrong by field', () => {
    const wrong = wrongIn(draft({ cpu: 'lots', time: '', replicas: '4..2', by: '2020-01-01T00:00', value: '-3' }), NOW);
    expect(wrong).toEqual({ cpu: 'notRead', time: 'missing', replicas: 'notRead', by: 'past', value: 'notRead' });
    expect(wrongIn(draft({ from: '2030-01-02T00:00', by: '2030-01-01T00:00' }), NOW)).toEqual({ by: 'order' });
  });

  it('in a queue has no window and no value', () => {
    const queued = draft({ promise: false, by: '2020-01-01T00:00', value: 'x', queue: 'night' });
    expect(wrongIn(queued, NOW)).toEqual({});
    expect(askOf(queued).deadline).toBeUndefined();
    expect(jobOf(queued).queue).toBe('night');
  });

  it('in a queue may be many, and come after others', () => {
    const many = draft({ promise: false, array: '0-99:2%10', after: '12, 13:any', project: '语言 模型' });
    expect(wrongIn(many, NOW)).toEqual({});
    expect(jobOf(many)).toMatchObject({ project: '语言 模型', array: { from: 0, to: 99, step: 2, limit: 10 }, after: [{ job: 12, when: 'ok' }, { job: 13, when: 'any' }] });
    expect(jobOf({ ...many, promise: true })).not.toHaveProperty('array');
    expect(draftOf(jobOf(many))).toMatchObject({ promise: false, array: '0-99:2%10', after: '', project: '语言 模型' });
    expect(readArray('1,3,5%2')).toEqual({ from: 1, to: 5, step: 2, limit: 2 });
    for (const bad of ['9-1', 'x', '0-9%0', '0-9:0', '1,2,4', '0-200000']) expect(readArray(bad)).toBe('bad');
    for (const bad of ['x', '12:maybe', '1,,2']) expect(readAfter(bad)).toBe('bad');
    expect(wrongIn(draft({ promise: false, array: 'x', after: 'y', project: 'a\u202eb' }), NOW)).toEqual({ array: 'notRead', after: 'notRead', project: 'notRead' });
  });

  it('is a bid as the command line knows one, and sends the most that it may cost', () => {
    expect(isBid(BLANK)).toBe(false);
    for (const bid of [{ from: '2030-01-01T00:00' }, { by: '2030-01-01T00:00' }, { value: '3' }, { more: { most: '3' } }, { more: { value: [{ by: '2030-01-01T00:00', worth: 3 }] } }]) {
      expect(isBid(draft(bid)), JSON.stringify(bid)).toBe(true);
    }
    const limited = draft({ command: 'true', more: { most: '12.5' } });
    expect(jobOf(limited)).toMatchObject({ most: '12.5' });
    expect(quoteAskOf(limited).value).toBe('12.5');
    expect(quoteAskOf({ ...limited, value: '30' }).value).toBe('30');
    expect(jobOf({ ...limited, promise: false })).not.toHaveProperty('most');
  });

  it('leaves it to the server what is not said', () => {
    expect(askOf(draft({ cpu: '', memory: '' })).resources).toEqual({});
    expect(askOf(draft({ cpu: '', memory: '', gpu: '1' })).resources).toEqual({ gpu: '1' });
  });

  it('takes the price where it says so, and in no queue', () => {
    const taking = draft({ command: 'true', more: { accept_price: true } });
    expect(isBid(taking)).toBe(true);
    expect(jobOf(taking)).toMatchObject({ accept_price: true });
    expect(jobOf({ ...taking, promise: false })).not.toHaveProperty('accept_price');
    expect(draftOf(jobOf(taking))).toMatchObject({ promise: true, more: { accept_price: true } });
  });

  it('asks for no GPU where none or 0 is written', () => {
    expect(askOf(draft({ gpu: '0' })).resources).not.toHaveProperty('gpu');
    expect(askOf(draft({ gpu: '2', gpuModel: 'h100' })).resources).toMatchObject({ gpu: '2', 'gpu.model': 'h100' });
  });

  it('of a job that is handed in again is what the server says: a promise without a worth, and no minute less than there is', () => {
    const job = jobOf(draft({ command: 'true' }));
    const again = draftOf({ ...job, ask: { ...job.ask, deadline: '2030-01-01T00:00:01Z' } }, true);
    expect(again).toMatchObject({ promise: true, value: '', from: '' });
    expect(Date.parse(again.by)).toBeGreaterThanOrEqual(Date.parse('2030-01-01T00:00:01Z'));
    expect(draftOf(job).promise).toBe(false);
  });

  it('becomes a job and comes back from it', () => {
    const written = draft({
      name: 'sweep', command: "python train.py --name 'a b'", gpu: '0.5', cpu: '4', memory: '16Gi', replicas: '2..8', time: '2h30m',
      pool: 'training', inputs: [{ data: 'ada/mnist', path: 'data' }], env: { SEED: '1' }, image: 'torch', preemptible: true,
      more: { priority: 3, constraints: { spread: true }, secrets: ['KEY'], terminal: true }, otherResources: { 'gpu.memory': '40Gi' },
    });
    expect(draftOf({ ...jobOf(written), value: '30' })).toEqual({ ...written, value: '30' });
    expect(draftOf({ ...jobOf(written), hold: 7 })).toEqual(written);
    // One that was neither bid for nor held waited in the queue of all.
    expect(draftOf(jobOf(written)).promise).toBe(false);
  });
});

describe('replicas', () => {
  it('are a number or a range', () => {
    expect(readReplicas('')).toBeUndefined();
    expect(readReplicas('4')).toBe(4);
    expect(readReplicas('2..8')).toEqual({ min: 2, max: 8 });
    for (const bad of ['0', '8..2', 'x', '2..', '-1']) expect(readReplicas(bad), bad).toBe('bad');
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
