/** A small platform with something of everything on it, the same for every test of a worker. */
import type { Server } from './server';

export const PASSWORD = 'correct horse battery';
/** An administrator, and a researcher who may do no more than others. */
export const ADMIN = 'root';
export const USER = 'ada';
/** One who may hold no more than one core at a time. */
export const TIGHT = 'theo';

export const NODES = `
nodes:
  - name: h100
    count: 4
    pool: training
    rack: r1
    capacity: { cpu: 64, memory: 512Gi, gpu: 8, gpu.model: h100, gpu.memory: 80Gi }
  - name: l4
    count: 3
    pool: inference
    rack: r2
    capacity: { cpu: 32, memory: 128Gi, gpu: 4, gpu.model: l4, gpu.memory: 24Gi }
`;

export interface Seeded {
  /** A job that ran here and left a log, metrics and an output. */
  done: number;
  /** One that is promised for later. */
  promised: number;
  /** One that waits in a queue behind what never ends. */
  waiting: number;
}

const TRAIN = [
  'import os, time',
  'for step in range(1, 41):',
  "    print(f'\\x1b[32mstep {step}\\x1b[0m of 40')",
  "    print(f'era: metric loss={1 / step:.4f} step={step}')",
  "    print(f'era: metric accuracy={1 - 1 / (step + 1):.4f} step={step}', flush=True)",
  "os.makedirs(os.environ.get('ERA_OUTPUTS', 'outputs'), exist_ok=True)",
  "open(os.path.join(os.environ.get('ERA_OUTPUTS', 'outputs'), 'model.json'), 'w').write('{\"ok\": true}')",
  "print('<b>done</b> & well')",
].join('\n');

interface Submitted {
  job: number;
}

/** Makes the accounts and the jobs. */
export async function seed(server: Server): Promise<Seeded> {
  for (const [name, role] of [[ADMIN, 'administrator'], [USER, 'user'], [TIGHT, 'user']]) {
    await server.ask('POST', '/users', { name, role, group: 'vision', credits: '10000', password: PASSWORD });
  }
  await server.ask('PUT', `/users/${TIGHT}/quota`, { cpu: '1' });
  const login = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: PASSWORD, label: 'seed' });
  const submit = async (job: object) => (await server.ask<Submitted>('POST', '/jobs', job, login.token)).job;
  await until(async () => (await server.list<unknown>('/nodes')).length >= 8);

  const local = { constraints: { pool: 'default' } };
  const done = await submit({
    name: 'mnist-baseline',
    work: { command: ['python3', '-c', TRAIN] },
    ask: { resources: { cpu: '500m', memory: '128Mi' }, duration_s: 60, ...local },
  });
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const gpus = (count: number) => ({ cpu: String(count * 8), memory: `${count * 32}Gi`, gpu: String(count) });
  const work = { command: ['true'] };
  const promised = await submit({
    name: 'resnet-sweep',
    project: 'vision',
    work,
    ask: { resources: gpus(4), duration_s: 7200, earliest: at(3), deadline: at(20), constraints: { pool: 'training' } },
    value: '5000',
  });
  for (let index = 0; index < 6; index += 1) {
    await submit({
      name: `pretrain-${index}`,
      project: 'pretraining',
      work,
      ask: { resources: gpus(8), duration_s: 3600 * (1 + index), earliest: at(1 + index * 2), deadline: at(40), constraints: { pool: 'training' } },
      value: '900',
    });
  }
  // Waits for a job that itself waits for its promised hour.
  const waiting = await submit({
    name: 'evaluate',
    work,
    ask: { resources: { cpu: '1', memory: '1Gi' }, duration_s: 600 },
    after: [{ job: promised }],
  });
  await until(async () => (await server.ask<{ state: string }>('GET', `/jobs/${done}`)).state === 'succeeded');
  return { done, promised, waiting };
}

/** A token of one of the accounts. */
export async function tokenOf(server: Server, user: string): Promise<string> {
  return (await server.ask<{ token: string }>('POST', '/sessions', { user, password: PASSWORD, label: 'test' })).token;
}

/** A promise of an administrator over whole nodes of a pool, so many hours from now. */
export async function takeNodes(server: Server, pool: 'training' | 'inference', nodes: number, [from, to]: readonly [number, number]): Promise<number> {
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const gpus = pool === 'training' ? 8 : 4;
  const ask = { resources: { cpu: '8', memory: '8Gi', gpu: String(gpus) }, replicas: nodes, duration_s: (to - from) * 3600, earliest: at(from), deadline: at(to + 0.1), constraints: { pool } };
  const token = await tokenOf(server, ADMIN);
  return (await server.ask<Submitted>('POST', '/jobs', { name: 'of-somebody-else', work: { command: ['true'] }, ask, value: '1000000' }, token)).job;
}

/** Waits until something is so. */
export async function until(so: () => Promise<boolean>, limitMs = 90_000): Promise<void> {
  const deadline = Date.now() + limitMs;
  while (!(await so())) {
    if (Date.now() > deadline) throw new Error(`not so after ${limitMs} ms: ${so}`);
    await new Promise((wait) => setTimeout(wait, 150));
  }
}
