import { expect, it } from 'vitest';
import { eraRun } from './command-line';
import { BLANK } from './draft';

it('the line says what the draft says, quoted for a shell', () => {
  const draft = { ...BLANK, name: "ada's run", gpu: '2', cpu: '8', memory: '64Gi', time: '2h', by: '2026-11-20T18:00', value: '30', command: 'python train.py --tag "a b"' };
  expect(eraRun(draft).text).toBe(
    `era run --name 'ada'\\''s run' --gpu 2 --cpu 8 --memory 64Gi --time 2h --by 2026-11-20T18:00 --value 30 -- python train.py --tag 'a b'`,
  );
});

it('a job for a queue has no window, and what is missing is named', () => {
  expect(eraRun({ ...BLANK, promise: false, by: '2026-11-20T18:00', queue: 'night' }).text).toBe('era run --queue night -- COMMAND');
});

it('arrays, dependencies and what the form has no control for are on the line', () => {
  const draft = { ...BLANK, project: 'thesis', promise: false, queue: 'night', array: '0-9%2', after: '12, 13:any', more: { priority: -3, overrun: 'stop', release_when_idle: true }, command: 'true' };
  expect(eraRun(draft).text).toBe('era run --project thesis --queue night --array 0-9%2 --after 12,13:any --overrun stop --priority=-3 --release-when-idle -- true');
});

it('a promise of which nobody says a worth takes the price, so that it is no job for a queue', () => {
  expect(eraRun({ ...BLANK, command: 'true' }).text).toBe('era run --accept-price -- true');
  expect(eraRun({ ...BLANK, command: 'true', value: '30' }).text).toBe('era run --value 30 -- true');
  expect(eraRun({ ...BLANK, command: 'true', value: '30', more: { most: '20' } }).text).toContain('--value 30 --most 20');
  expect(eraRun({ ...BLANK, command: 'true', promise: null }).text).toBe('era run -- true');
});

it('what only a shell reads is handed to one', () => {
  expect(eraRun({ ...BLANK, promise: false, command: "make && ./run 'a b'" }).text).toContain(` -- sh -c 'make && ./run '\\''a b'\\'''`);
});

it('places and facts are flags, and what has none is told', () => {
  const constraints = { domain: 'lab', labels: { zone: 'b' }, same: 'rack', per_node_max: 2, spread: true };
  const attributes = { field: 'vision', framework: 'pytorch', network: 'resnet50', parameters_k: 25_000, data_mib: 3 };
  const all = eraRun({ ...BLANK, promise: false, command: 'true', more: { constraints, attributes } });
  expect(all.text).toContain('--domain lab --label zone=b --same rack --per-node-max 2 --spread --field vision --framework pytorch --network resnet50 --parameters-k 25000 --data-mib 3');
  expect(all.left).toEqual([]);
  const stepped = eraRun({ ...BLANK, command: 'true', more: { value: [{ by: '2030-01-01T00:00', worth: 3 }] } });
  expect(stepped).toEqual({ text: 'era run --accept-price -- true', left: ['value'] });
});

it('dropped code is the folder that the line is run in', () => {
  expect(eraRun({ ...BLANK, promise: false, code: 'abc', command: 'true' }).text).toContain('--code . -- true');
});
