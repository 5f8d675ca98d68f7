/** What axe finds wrong on a page for people who see, hear or move otherwise (WCAG 2.2 AA). */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from '@playwright/test';
import type axe from 'axe-core';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** One line for each finding; none is what tests expect. */
export async function findings(page: Page): Promise<string[]> {
  // Evaluated by the debugger, which the page's own policy does not bind.
  await page.evaluate(source);
  const results = await page.evaluate(
    (tags) => (window as unknown as { axe: typeof axe }).axe.run(document, { runOnly: { type: 'tag', values: tags } }),
    RULES,
  );
  return results.violations.flatMap((violation) =>
    violation.nodes.map((node) => `${violation.id}: ${node.target.join(' ')}: ${node.failureSummary?.split('\n').at(1)?.trim() ?? violation.help}`),
  );
}
