/**
 * A picture of every page in both themes, to be looked at: `ERA_SHOTS=folder npm run browser shots`.
 * Without the folder nothing is taken.
 */
import { join } from 'node:path';
import { ADMIN, test, THEMES } from './harness';

const folder = process.env.ERA_SHOTS;
test.skip(!folder, 'taken only where ERA_SHOTS names a folder');
test.use({ account: process.env.ERA_SHOTS_AS ?? ADMIN });

test('every page is seen', async ({ page, seeded }) => {
  test.setTimeout(300_000);
  const pages: [string, string][] = [
    ['overview', '/'],
    ['welcome', '/welcome'],
    ['new-job', '/jobs/new?template=gpu'],
    ['jobs', '/jobs'],
    ['job', `/jobs/${seeded.done}`],
    ['job-waiting', `/jobs/${seeded.waiting}`],
    ['job-log', `/jobs/${seeded.done}?tab=logs`],
    ['job-metrics', `/jobs/${seeded.done}?tab=metrics`],
    ['job-outputs', `/jobs/${seeded.done}?tab=outputs`],
    ['market', '/market?pool=training'],
    ['cluster', '/cluster'],
    ['promises', '/cluster?view=promises'],
    ['queues', '/queues'],
    ['policies', '/queues?view=policies&policy=priority'],
    ['node', '/cluster?node=l4-2'],
    ['audit', '/administration?tab=audit'],
    ['data', '/data'],
    ['wallet', '/wallet'],
    ['report', '/report'],
    ['lab', '/lab'],
    ['administration', '/administration'],
    ['tokens', '/tokens'],
    ['compare', `/compare?jobs=${seeded.done},${seeded.promised}`],
    ['data', '/data'],
    ['wallet', '/wallet?of=ada'],
    ['tokens', '/tokens'],
    ['administration', '/administration'],
    ['market-rules', '/administration?tab=market'],
    ['health', '/administration?tab=health'],
    ['report', '/report'],
    ['lab', '/lab'],
  ];
  const only = process.env.ERA_SHOTS_ONLY?.split(',');
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    for (const [name, path] of pages) {
      if (only && !only.includes(name)) continue;
      await page.goto(path);
      await page.waitForTimeout(1800);
      await page.screenshot({ path: join(folder ?? '.', `${name}-${theme}.png`) });
    }
  }
});
