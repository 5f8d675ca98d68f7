/**
 * A cluster at work, for pictures: several people, jobs that run on simulated GPUs, promises over
 * the coming days, a line that waits, budgets, a domain, data and a run of the laboratory.
 */
import { PASSWORD, USER } from './seed';
import type { Server } from './server';

/** Tasks on simulated nodes last, so that there is something to see on them. */
export const LASTING = 'task_s: 86400\n';

const PEOPLE = [
  ['grace', 'language', 'thesis'],
  ['alan', 'language', 'translation'],
  ['emmy', 'vision', 'detection'],
] as const;

export async function busy(server: Server): Promise<void> {
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const tokens = new Map<string, string>();
  for (const [name, group] of PEOPLE) await server.ask('POST', '/users', { name, group, credits: '8000', password: PASSWORD });
  for (const name of [USER, ...PEOPLE.map(([name]) => name)]) {
    tokens.set(name, (await server.ask<{ token: string }>('POST', '/sessions', { user: name, password: PASSWORD, label: 'laptop' })).token);
  }
  const hand = (user: string, job: object) => server.ask<{ job: number }>('POST', '/jobs', { work: { command: ['python', 'train.py'] }, ...job }, tokens.get(user));
  const asks = (gpus: number, hours: number, pool: string, more: object = {}) => ({
    resources: { cpu: String(gpus * 6), memory: `${gpus * 32}Gi`, gpu: String(gpus) },
    duration_s: 3600 * hours,
    constraints: { pool },
    ...more,
  });

  // On this machine itself: what it uses is measured.
  const work = 'import time, os, json\nend = time.time() + 25\nstep = 0\nkeep = []\nwhile time.time() < end:\n    step += 1\n    keep.append(bytearray(400_000))\n    sum(i * i for i in range(60_000))\n    time.sleep(0.05)\n    print(f"era: metric loss={3 / (step + 2) + 0.02 * (step % 3):.4f} step={step}", flush=True)\n    print(f"era: metric learning_rate={0.1 * 0.99 ** step:.5f} step={step}", flush=True)';
  await hand(USER, { name: 'finetune', project: 'vision', work: { command: ['python3', '-c', work] }, ask: { resources: { cpu: '1', memory: '512Mi' }, duration_s: 600, constraints: { pool: 'default' } } });

  // What runs: promises that have begun, and work from the queue in the gaps.
  await hand('grace', { name: 'llm-pretrain', project: 'thesis', ask: asks(8, 9, 'training', { deadline: at(10) }), value: '3000' });
  await hand('alan', { name: 'translate-large', project: 'translation', ask: asks(4, 5, 'training', { deadline: at(6) }), value: '2000' });
  await hand('emmy', { name: 'detector', project: 'detection', ask: asks(2, 6, 'training') });
  await hand(USER, { name: 'resnet-ablation', project: 'vision', ask: asks(2, 4, 'training') });
  for (const [index, name] of ['embed-wiki', 'serve-eval', 'distill'].entries()) await hand('alan', { name, project: 'translation', ask: asks(1 + index, 3, 'inference') });
  await hand('emmy', { name: 'label-video', project: 'detection', ask: asks(2, 2, 'inference', { deadline: at(4) }), value: '500' });

  // What is promised for the days to come.
  for (let index = 0; index < 22; index += 1) {
    const [user, , project] = PEOPLE[index % PEOPLE.length] ?? PEOPLE[0];
    const pool = index % 4 === 3 ? 'inference' : 'training';
    const gpus = Math.min([2, 4, 8, 1, 4][index % 5] ?? 2, pool === 'inference' ? 4 : 8);
    const start = 6 + index * 4.5 + (index % 3) * 2;
    await hand(user, { name: `${project}-${index}`, project, ask: asks(gpus, 3 + (index % 4) * 2, pool, { earliest: at(start), deadline: at(start + 30) }), value: '2500' });
  }
  // What waits: more than there is room for.
  for (let index = 0; index < 5; index += 1) await hand('alan', { name: `sweep-${index}`, project: 'translation', ask: asks(8, 5, 'training') });

  await server.ask('PUT', '/groups/vision/quota', { credits: '20000', gpu: '32' });
  await server.ask('PUT', `/users/${USER}/quota`, { credits: '4000', gpu: '16', gpu_hours: 400 });
  await server.ask('PUT', '/groups/language/quota', { credits: '30000', gpu_hours: 2000 });
  await server.ask('PUT', '/domains/lab', { name: 'lab', keep_share: 0.25, keep_gpus_min: 8, keep_level_min: 0, nodes: [] });
  await server.ask('PATCH', '/nodes/l4-2', { domain: 'lab' });
  for (const [name, visibility] of [['cifar-10', 'public'], ['wiki-text', 'group'], ['street-scenes', 'private']] as const) await server.ask('POST', '/data', { name, visibility }, tokens.get(USER));
  const headers = { authorization: `Bearer ${tokens.get(USER)}`, 'content-type': 'application/octet-stream' };
  for (const path of ['labels.csv', 'readme.md', 'train/batch-1.bin', 'train/batch-2.bin']) {
    await fetch(`${server.url}/api/v1/data/${USER}/cifar-10/files/${path}`, { method: 'PUT', headers, body: Buffer.alloc(40_000, path) });
  }
  await server.ask('POST', '/lab/runs', { kind: 'simulate', policies: ['fifo', 'sjf', 'fair-share'], jobs: 60, gpus: 32, load: 0.9, seed: 1 });
}
