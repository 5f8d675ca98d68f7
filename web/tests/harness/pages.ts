/** Every page and every part of one that has an address, for what must hold on all of them. */
import type { Page } from '@playwright/test';
import { PASSWORD, until, USER, type Seeded } from './seed';
import { signIn } from './sign-in';
import type { Server } from './server';

/** A data set with files and a run of the laboratory that is over, once a server, and their pages. */
const filled = new Map<string, readonly (readonly [name: string, path: string])[]>();
export async function filledPages(server: Server): Promise<readonly (readonly [name: string, path: string])[]> {
  const known = filled.get(server.url);
  if (known) return known;
  const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: PASSWORD, label: 'pages' });
  await server.ask('POST', '/data', { name: 'every-page', visibility: 'public' }, token);
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' };
  for (const path of ['labels.csv', 'train/batch.bin']) {
    const put = await fetch(`${server.url}/api/v1/data/${USER}/every-page/files/${path}`, { method: 'PUT', headers, body: 'a,b\n1,2\n' });
    if (!put.ok) throw new Error(`${path}: ${put.status} ${await put.text()}`);
  }
  const { id } = await server.ask<{ id: number }>('POST', '/lab/runs', { kind: 'simulate', policies: ['fifo', 'sjf'], jobs: 30, gpus: 16, load: 0.9, seed: 1 });
  await until(async () => (await server.ask<{ state: string }>('GET', `/lab/runs/${id}`)).state === 'done');
  const pages = [
    ['data-set', `/data/${USER}/every-page`],
    ['file', `/data/${USER}/every-page?show=labels.csv`],
    ['lab-run', `/lab/${id}`],
  ] as const;
  filled.set(server.url, pages);
  return pages;
}

/** What is seen before one is in: the door, and the choice of a password of one's own. */
export const DOORS = ['sign-in', 'new-password'] as const;

let newcomers = 0;
export async function toDoor(page: Page, server: Server, door: (typeof DOORS)[number]): Promise<void> {
  await page.context().clearCookies();
  if (door === 'new-password') {
    newcomers += 1;
    const name = `newcomer-${newcomers}`;
    const { password } = await server.ask<{ password: string }>('POST', '/users', { name, group: 'vision' });
    await page.context().addCookies([{ name: 'era_session', value: await signIn(server, name, password), url: server.url }]);
  }
  await page.goto('/');
}

export function everyPage(seeded: Seeded): readonly (readonly [name: string, path: string])[] {
  return [
    ['overview', '/'],
    ['welcome', '/welcome'],
    ['new-job', '/jobs/new?template=gpu'],
    ['jobs', '/jobs'],
    ['job', `/jobs/${seeded.done}`],
    ['job-waiting', `/jobs/${seeded.waiting}`],
    ['job-promised', `/jobs/${seeded.promised}`],
    ['job-log', `/jobs/${seeded.done}?tab=logs`],
    ['job-metrics', `/jobs/${seeded.done}?tab=metrics`],
    ['job-usage', `/jobs/${seeded.done}?tab=usage`],
    ['job-outputs', `/jobs/${seeded.done}?tab=outputs`],
    ['compare', `/compare?jobs=${seeded.done},${seeded.promised}`],
    ['market', '/market?pool=training'],
    ['cluster', '/cluster'],
    ['node', '/cluster?node=l4-2'],
    ['promises', '/cluster?view=promises'],
    ['domains', '/cluster?view=domains'],
    ['queues', '/queues'],
    ['policies', '/queues?view=policies&policy=priority'],
    ['data', '/data'],
    ['wallet', '/wallet?of=ada'],
    ['report', '/report'],
    ['lab', '/lab'],
    ['administration', '/administration'],
    ['groups', '/administration?tab=groups'],
    ['market-rules', '/administration?tab=market'],
    ['all-tokens', '/administration?tab=tokens'],
    ['audit', '/administration?tab=audit'],
    ['health', '/administration?tab=health'],
    ['tokens', '/tokens'],
    ['nowhere', '/no/such/place'],
  ];
}
