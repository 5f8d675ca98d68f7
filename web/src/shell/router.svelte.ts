/**
 * Where the reader is: the address bar is the state. Links are plain `<a href>`; a click on one of
 * ours changes the page without loading the document again.
 */
import { step } from '../ui/arrival';
import type { Page } from './page';
import { match, type Names } from './paths';

const found = import.meta.glob<{ default: Page | Page[] }>('../pages/*/page.ts', { eager: true });
/** Every page, those without names in their path first: `/jobs/compare` before `/jobs/:id`. */
export const pages: readonly Page[] = Object.values(found)
  .flatMap((module) => module.default)
  .sort((a, b) => Number(a.path.includes(':')) - Number(b.path.includes(':')));

export interface Place {
  page: Page;
  names: Names;
}

class Router {
  path = $state(location.pathname);
  query = $state.raw(new URLSearchParams(location.search));
  place = $derived(placeOf(this.path));

  constructor() {
    addEventListener('popstate', () => this.read());
    document.addEventListener('click', (event) => this.clicked(event));
  }

  go(to: string, options: { replace?: boolean } = {}): void {
    const url = new URL(to, location.href);
    if (url.href === location.href) return;
    const other = url.pathname !== location.pathname;
    if (options.replace) history.replaceState(null, '', url);
    else history.pushState(null, '', url);
    this.read();
    if (other) scrollTo(0, 0);
  }

  /** Changes parameters of the address, keeping the page: filters that a link can carry. */
  ask(changes: Record<string, string | undefined>): void {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined || value === '') query.delete(name);
      else query.set(name, value);
    }
    const text = query.toString();
    this.go(text === '' ? location.pathname : `${location.pathname}?${text}`, { replace: true });
  }

  private read(): void {
    step(this.path !== location.pathname);
    this.path = location.pathname;
    this.query = new URLSearchParams(location.search);
  }

  private clicked(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (link.pathname.startsWith('/api/')) return;
    event.preventDefault();
    this.go(link.href);
  }
}

export function placeOf(path: string): Place | undefined {
  for (const page of pages) {
    const names = match(page.path, path);
    if (names) return { page, names };
  }
  return undefined;
}

export const router = new Router();
