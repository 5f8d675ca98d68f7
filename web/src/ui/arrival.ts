/**
 * Where the focus is after a step to another page: at its heading, so that whoever reads by ear or
 * moves by keyboard begins there. Not when the document is first loaded, and not where the page or
 * the reader has put it elsewhere meanwhile.
 */
let stepped = false;
/** What had the focus when a step to another page began, until one has arrived. */
let from: Element | null | undefined;

/** The address has changed; `other` where that is another page. */
export function step(other: boolean): void {
  stepped = true;
  if (other) from = document.activeElement;
}

/** A heading has appeared. It may be a second one, where a page has loaded what it is about. */
export function arrive(heading: HTMLElement): void {
  const at = document.activeElement;
  const lost = at === null || at === document.body;
  if (!stepped || !(lost || at === from)) return;
  from = undefined;
  if (!document.querySelector('main [autofocus]')) heading.focus({ preventScroll: true });
}
