/** How smooth a page is, as the browser itself counts it. */
import type { Page } from '@playwright/test';

/**
 * Does something once a frame and gives the most milliseconds that the page's own thread worked for
 * one frame: scripts, layout and paint. It is the thread's time, not the clock's, so that what else
 * a busy machine does is not counted.
 */
export async function busiestFrameMs(page: Page, frames: number, act: (frame: number) => Promise<unknown>): Promise<number> {
  const browser = await page.context().newCDPSession(page);
  await browser.send('Performance.enable', { timeDomain: 'threadTicks' });
  const worked = async () => {
    const { metrics } = await browser.send('Performance.getMetrics');
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1000;
  };
  let busiest = 0;
  for (let frame = 0; frame < frames; frame += 1) {
    const before = await worked();
    await act(frame);
    // Until that frame and its consequences are drawn.
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    busiest = Math.max(busiest, (await worked()) - before);
  }
  await browser.detach();
  return busiest;
}
