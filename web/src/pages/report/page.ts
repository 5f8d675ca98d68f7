import { FileChartColumn } from 'lucide';
import type { Page } from '../../shell/page';

export default {
  path: '/report',
  title: { en: 'Report', zh: '报告' },
  load: () => import('./Report.svelte'),
  menu: { section: 'administration', order: 10, icon: FileChartColumn },
  allows: (me) => me.role === 'administrator',
  words: 'measures utilisation start-up success cost print compare',
} satisfies Page;
