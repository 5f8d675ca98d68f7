/**
 * A picture of every page, in both themes, in both languages, on a desk and on a phone, to be looked
 * at: `ERA_SHOTS=folder npm run browser shots`. `ERA_SHOTS_ONLY=jobs,market` takes some pages alone,
 * `ERA_SHOTS_FORMS=light-en-desk,dark-zh-phone` some forms. Without the folder nothing is taken.
 */
import { join } from 'node:path';
import { ADMIN, test, THEMES } from './harness';
import { busy } from './harness/busy';
import { DOORS, everyPage, toDoor } from './harness/pages';

const folder = process.env.ERA_SHOTS ?? '';
test.use({ account: process.env.ERA_SHOTS_AS ?? ADMIN });

const SIZES = { desk: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } } as const;
const FORMS = THEMES.flatMap((theme) => (['en', 'zh'] as const).flatMap((language) => (['desk', 'phone'] as const).map((size) => ({ theme, language, size, name: `${theme}-${language}-${size}` }))));

const only = process.env.ERA_SHOTS_ONLY?.split(',');
/** What only a cluster at work has. */
const MORE = [['data-set', '/data/ada/cifar-10'], ['lab-run', '/lab/1'], ['node-at-work', '/cluster?node=h100-0'], ['wallet-own', '/wallet']] as const;
/** The server that is at work already. */
let filled = '';
const forms = process.env.ERA_SHOTS_FORMS?.split(',');

for (const { theme, language, size, name: form } of FORMS) {
  test(`every page is seen: ${form}`, async ({ page, seeded, server }) => {
    test.skip(forms !== undefined && !forms.includes(form));
    if (filled !== server.url) await busy(server);
    const [worked] = (await server.ask<{ items: { id: number }[] }>('GET', '/jobs?name=finetune')).items;
    const use = [['usage-at-work', `/jobs/${worked?.id}?tab=usage`], ['metrics-at-work', `/jobs/${worked?.id}?tab=metrics`]] as const;
    filled = server.url;
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize(SIZES[size]);
    // Not in the sandboxed charts of a run.
    await page.addInitScript((chosen) => void (window === top && localStorage.setItem('era.language', chosen)), language);
    for (const [name, path] of [...everyPage(seeded), ...MORE, ...use]) {
      if (only && !only.includes(name)) continue;
      await page.goto(path);
      await page.waitForTimeout(1500);
      await page.screenshot({ path: join(folder ?? '.', `${name}-${form}.png`), fullPage: true });
    }
    for (const door of DOORS) {
      if (only && !only.includes(door)) continue;
      await toDoor(page, server, door);
      await page.waitForTimeout(1500);
      await page.screenshot({ path: join(folder ?? '.', `${door}-${form}.png`), fullPage: true });
    }
  });
}
