import { ShieldCheck } from 'lucide';
import type { Page } from '../../shell/page';

export default {
  path: '/administration',
  title: { en: 'Administration', zh: '管理' },
  load: () => import('./Administration.svelte'),
  menu: { section: 'administration', order: 30, icon: ShieldCheck },
  allows: (me) => me.role !== 'user',
  words: 'users groups quota credits mechanism market audit health accounts',
} satisfies Page;
