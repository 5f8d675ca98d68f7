import { LayoutDashboard } from 'lucide';
import type { Page } from '../../shell/page';

export default {
  path: '/',
  title: { en: 'Overview', zh: '概览' },
  load: () => import('./Overview.svelte'),
  menu: { section: 'work', order: 0, icon: LayoutDashboard },
  words: 'home start dashboard utilisation',
} satisfies Page;
