import { FlaskConical } from 'lucide';
import type { Page } from '../../shell/page';

export default [
  {
    path: '/lab',
    title: { en: 'Lab', zh: '实验室' },
    load: () => import('./Lab.svelte'),
    menu: { section: 'administration', order: 20, icon: FlaskConical },
    allows: (me) => me.role === 'administrator',
    words: 'simulation simulate replay tune tuning policy experiment what if',
  },
  {
    path: '/lab/:id',
    title: { en: 'Run', zh: '运行' },
    load: () => import('./Run.svelte'),
    allows: (me) => me.role === 'administrator',
  },
] satisfies Page[];
