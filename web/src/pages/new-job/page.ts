import { Plus } from 'lucide';
import type { Page } from '../../shell/page';

export default {
  path: '/jobs/new',
  title: { en: 'New job', zh: '新建作业' },
  load: () => import('./NewJob.svelte'),
  // A copy of a job, a template or an hour of the calendar: each is a draft of its own.
  anewByQuery: true,
  menu: { section: 'work', order: 10, icon: Plus },
  words: 'quote price submit run reserve book bid',
} satisfies Page;
