import type { Page } from '../../shell/page';

export default {
  path: '/compare',
  title: { en: 'Compare jobs', zh: '对比作业' },
  load: () => import('./Compare.svelte'),
  words: 'metrics side by side',
} satisfies Page;
