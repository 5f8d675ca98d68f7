import type { Page } from '../../shell/page';

export default {
  path: '/jobs/:id',
  title: { en: 'Job', zh: '作业' },
  load: () => import('./Job.svelte'),
} satisfies Page;
