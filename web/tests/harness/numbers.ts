import type { Page } from '@playwright/test';

/** Numbers that are not whole where they stand: broken over two lines, or cut off by a box that does not scroll. */
export function brokenNumbers(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const broken: string[] = [];
    const clips = (box: Element) => ['hidden', 'clip'].includes(getComputedStyle(box).overflowX);
    const texts = document.createTreeWalker(document.querySelector('main') ?? document.body, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const parent = node.parentElement;
      // What is code breaks where it must; what is only read aloud is seen by nobody.
      if (!parent || parent.closest('pre, code, .mono, .unseen, svg, textarea, [aria-hidden=true]') || !parent.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
      for (const { 0: number, index } of (node.textContent ?? '').matchAll(/[+-]?\d[\d.,]*\d|\d/g)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + number.length);
        const { right } = range.getBoundingClientRect();
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
        const told = `${number} in “${parent.textContent?.trim().slice(0, 60)}”`;
        if (lines.size > 1) broken.push(`${told} is in ${lines.size} lines`);
        if (!parent.closest('.num, .end')) continue;
        for (let box: Element | null = parent; box; box = box.parentElement) {
          if (['auto', 'scroll'].includes(getComputedStyle(box).overflowX)) {
            const it = box.getBoundingClientRect();
            // A box that scrolls on purpose is a wide table or a chart; one of rows that are drawn as they are seen is not.
            if (box.matches('[role=table]') && right > it.right + 1) broken.push(`${told} is cut off`);
            break;
          }
          if (clips(box) && right > box.getBoundingClientRect().right + 1) {
            broken.push(`${told} is cut off`);
            break;
          }
        }
      }
    }
    return broken;
  });
}

/** So much of what is cut must be seen to be of use: two or three ideographs, or half a short word. */
const SEEN_EM_MIN = 3;

/** Words that are cut to next to nothing by a box that has too little room for them. */
export function cutWords(page: Page): Promise<string[]> {
  return page.evaluate((least) => {
    const boxes = [...(document.querySelector('main') ?? document.body).querySelectorAll<HTMLElement>('*')];
    return boxes.flatMap((box) => {
      const style = getComputedStyle(box);
      const hides = ['hidden', 'clip'].includes(style.overflowX) && box.scrollWidth > box.clientWidth + 1;
      // What is only read aloud or drawn is no word that is seen.
      if (!hides || style.textOverflow !== 'ellipsis' || box.closest('.unseen, svg, [aria-hidden=true]') || !box.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return [];
      const seen = box.clientWidth / Number.parseFloat(style.fontSize);
      return seen < least ? [`“${box.innerText.slice(0, 60)}” is cut to ${box.clientWidth} px`] : [];
    });
  }, SEEN_EM_MIN);
}
