/**
 * A picture of every page, in both themes, in both languages, on a desk and on a phone, to be looked
 * at: `ERA_SHOTS=folder npm run browser shots`. `ERA_SHOTS_ONLY=jobs,market` takes some pages alone,
 * `ERA_SHOTS_FORMS=light-en-desk,dark-zh-phone` some forms. Without the folder nothing is taken.
 */
import { join } from 'node:path';
import { ADMIN, test, THEMES } from './harness';

const folder = process.env.ERA_SHOTS;
test.skip(!folder, 'taken only where ERA_SHOTS names a folder');
test.use({ account: process.env.ERA_SHOTS_AS ?? ADMIN });

const SIZES = { desk: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } } as const;
const FORMS = THEMES.flatMap((theme) => (['en', 'zh'] as const).flatMap((language) => (['desk', 'phone'] as const).map((size) => ({ theme, language, size, name: `${theme}-${language}-${size}` }))));

const only = process.env.ERA_SHOTS_ONLY?.split(',');
const forms = process.env.ERA_SHOTS_FORMS?.split(',');

for (const { theme, language, size, name: form } of FORMS) {
  test(`every page is seen: ${form}`, async ({ page, seeded, server }) => {
    test.skip(forms !== undefined && !forms.includes(form));
    test.setTimeout(300_000);
    const sets = await server.ask<{ items: unknown[] }>('GET', '/data');
    if (sets.items.length === 0) {
      for (const name of ['cifar-10', 'wiki-text']) await server.ask('POST', '/data', { name, visibility: 'everyone' }).catch(() => undefined);
    }
    const pages: [string, string][] = [
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
      ['audit', '/administration?tab=audit'],
      ['health', '/administration?tab=health'],
      ['tokens', '/tokens'],
    ];
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize(SIZES[size]);
    await page.addInitScript((chosen) => localStorage.setItem('era.language', chosen), language);
    for (const [name, path] of pages) {
      if (only && !only.includes(name)) continue;
      await page.goto(path);
      await page.waitForTimeout(1500);
      await page.screenshot({ path: join(folder ?? '.', `${name}-${form}.png`), fullPage: true });
    }
  });
}
