/**
 * Tests that were skipped, for Playwright and for Vitest: each goes to the file that `ERA_SKIPPED`
 * names, as in all other languages of this project: the test, a tab, and why.
 */
import { appendFileSync } from 'node:fs';
import type { Reporter, TestCase, TestResult } from '@playwright/test/reporter';
import type { TestCase as UnitTest } from 'vitest/node';

function note(test: string, why = 'no reason was given') {
  if (process.env.ERA_SKIPPED) appendFileSync(process.env.ERA_SKIPPED, `${test}\t${why.replace(/\s+/g, ' ')}\n`);
}

export default class Skipped implements Reporter {
  printsToStdio() {
    return false;
  }

  /** Playwright's. */
  onTestEnd(test: TestCase, { status, annotations }: TestResult) {
    if (status === 'skipped') note(test.titlePath().slice(2).join(' '), annotations.find(({ type }) => type === 'skip')?.description);
  }

  /** Vitest's. */
  onTestCaseResult(test: UnitTest) {
    const result = test.result();
    if (result.state === 'skipped') note(`${test.module.relativeModuleId} ${test.fullName}`, result.note);
  }
}
