import { Plus } from 'lucide';
import type { Page } from '../../shell/page';

export default {
  path: '/jobs/new',
  title: { en: 'New job', zh: '新建作业' },
  load: () => import('./NewJob.svelte'),
  menu: { section: 'work', order: 10, icon: Plus },
  words: 'quote price submit run reserve book bid',
} satisfies Page;
