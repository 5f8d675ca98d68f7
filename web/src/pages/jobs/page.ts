import { ListChecks } from 'lucide';
import type { Page } from '../../shell/page';

export default {
  path: '/jobs',
  title: { en: 'Jobs', zh: '作业' },
  load: () => import('./Jobs.svelte'),
  menu: { section: 'work', order: 20, icon: ListChecks },
  words: 'list table running waiting',
} satisfies Page;
