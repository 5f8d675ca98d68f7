import { expect, it } from 'vitest';
import { eraRun } from './command-line';
import { BLANK } from './draft';

it('the line says what the draft says, quoted for a shell', () => {
  const draft = { ...BLANK, name: "ada's run", gpu: '2', cpu: '8', memory: '64Gi', time: '2h', by: '2026-11-20T18:00', value: '30', command: 'python train.py --tag "a b"' };
  expect(eraRun(draft)).toBe(
    `era run --name 'ada'\\''s run' --gpu 2 --cpu 8 --memory 64Gi --time 2h --by 2026-11-20T18:00 --value 30 -- python train.py --tag 'a b'`,
  );
});

it('a job for a queue has no window, and what is missing is named', () => {
  expect(eraRun({ ...BLANK, promise: false, by: '2026-11-20T18:00', queue: 'night' })).toBe('era run --cpu 1 --memory 1Gi --time 1h --queue night -- COMMAND');
});

it('arrays, dependencies and what the form has no control for are on the line', () => {
  const draft = { ...BLANK, project: 'thesis', promise: false, queue: 'night', array: '0-9%2', after: '12, 13:any', more: { priority: -3, overrun: 'stop', release_when_idle: true }, command: 'true' };
  expect(eraRun(draft)).toBe('era run --project thesis --cpu 1 --memory 1Gi --time 1h --queue night --array 0-9%2 --after 12,13:any --overrun stop --priority=-3 --release-when-idle -- true');
});
