/**
 * What a page says about itself. Each folder under `pages/` has a `page.ts` whose default export
 * is this; the shell finds them by themselves, so that a new page touches no file of another.
 */
import type { IconNode } from 'lucide';
import type { Component } from 'svelte';
import type { Me } from '../api/types';
import type { Both } from '../text/words';
import type { Names } from './paths';

export type Section = 'work' | 'platform' | 'account' | 'administration';
export const SECTIONS: readonly Section[] = ['work', 'platform', 'account', 'administration'];

export interface PageProps {
  /** What the path names, such as `id` of `/jobs/:id`. */
  names: Names;
}

export interface Page {
  path: string;
  title: Both;
  /** Loads the page itself, when it is first needed. It may take `names`, or nothing. */
  load: () => Promise<{ default: Component<PageProps> | Component<Record<string, never>> }>;
  /** Its place in the navigation; absent where it is reached from another page. */
  menu?: { section: Section; order: number; icon: IconNode };
  /** Whether another query is another page, begun anew, as another path is. Elsewhere it is a filter. */
  anewByQuery?: boolean;
  /** Who may see it; everybody who is signed in where nothing is said. */
  allows?: (me: Me) => boolean;
  /** More words by which the command palette finds it. */
  words?: string;
}
