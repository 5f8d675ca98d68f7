/**
 * How long things take in the browser, on whatever machine the tests run. What a page promises is
 * promised on a machine that is not busy with something else; how busy it is, is measured by a deed
 * whose work is known, and the limit grows by as much as that one was slower than it is at rest. All
 * figures are printed, so that nobody has to trust the limit.
 */
import type { Page } from '@playwright/test';

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** A limit on this machine: `bare` took `atRest` ms where nothing else ran. */
export function allowed(limitMs: number, bareMs: number, atRestMs: number): number {
  return limitMs * Math.max(1, bareMs / atRestMs);
}

/**
 * Milliseconds between one frame and the next while something is done, as the page sees them.
 * @param workMs so much of a processor is used in each frame besides: a page of known work
 */
export async function frames(page: Page, deed: () => Promise<void>, workMs = 0): Promise<number[]> {
  await page.evaluate((work) => {
    const kept = { times: [] as number[], on: true };
    (window as unknown as { eraFrames: typeof kept }).eraFrames = kept;
    const spin = (rounds: number) => {
      let sum = 0;
      for (let at = 0; at < rounds; at += 1) sum += Math.sqrt(at);
      return sum;
    };
    // How much work that is: the quickest of many short tries was interrupted by nobody.
    const TRY = 100_000;
    let quickest = Infinity;
    for (let left = work > 0 ? 60 : 0; left > 0; left -= 1) {
      const begun = performance.now();
      spin(TRY);
      quickest = Math.min(quickest, performance.now() - begun);
    }
    const rounds = work > 0 ? (work / Math.max(0.01, quickest)) * TRY : 0;
    const next = (at: number) => {
      kept.times.push(at);
      spin(rounds);
      if (kept.on) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }, workMs);
  await deed();
  const times = await page.evaluate(async () => {
    const { eraFrames: kept } = window as unknown as { eraFrames: { times: number[]; on: boolean } };
    // What the last of it caused belongs to it.
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    kept.on = false;
    return kept.times;
  });
  return times.slice(1).map((at, index) => at - (times[index] ?? at));
}
