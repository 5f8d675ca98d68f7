/** What holds on every page, as its list has them: in both themes, both languages, wide and narrow. */
import { ADMIN, expect, findings, test } from './harness';
import { brokenNumbers, cutWords } from './harness/numbers';
import { DOORS, everyPage, filledPages, toDoor } from './harness/pages';

test.use({ account: ADMIN });

// Each page's own tests have the other theme for axe, which is most of a form's three quarters of a minute.
const FORMS = [
  { theme: 'light', language: 'en', width: 390, axe: true },
  { theme: 'dark', language: 'zh', width: 1280, axe: true },
  { theme: 'dark', language: 'zh', width: 390, axe: false },
] as const;

for (const { theme, language, width, axe } of FORMS) {
  test(`${axe ? 'axe finds nothing, ' : ''}nothing is wider than the screen, no number is broken and no word cut to nothing: ${theme}, ${language}, ${width} px`, async ({ page, seeded, server }) => {
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize({ width, height: 900 });
    // Not in the sandboxed charts of a run.
    await page.addInitScript((chosen) => void (window === top && localStorage.setItem('era.language', chosen)), language);
    const look = async (name: string) => {
      await expect(page.locator('main h1').first()).toBeVisible();
      // Nothing is still on its way: charts and tables have come.
      await expect(page.locator('.skeleton')).toHaveCount(0);
      await page.waitForTimeout(300);
      if (axe) expect(await findings(page), name).toEqual([]);
      expect(await brokenNumbers(page), name).toEqual([]);
      expect(await cutWords(page), name).toEqual([]);
      // Narrow also as a screen of 1280 px is at 400 %.
      for (const across of width < 1280 ? [width, 320] : [width]) {
        await page.setViewportSize({ width: across, height: 900 });
        expect(await page.evaluate(() => document.documentElement.scrollWidth), `${name}, ${across} px`).toBeLessThanOrEqual(across);
      }
      await page.setViewportSize({ width, height: 900 });
    };
    for (const [name, path] of [...everyPage(seeded), ...(await filledPages(server))]) {
      await page.goto(path);
      await look(name);
    }
    for (const door of DOORS) {
      await toDoor(page, server, door);
      await look(door);
    }
  });
}
