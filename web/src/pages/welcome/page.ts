import { Sparkles } from 'lucide';
import type { Page } from '../../shell/page';

export default {
  path: '/welcome',
  title: { en: 'Welcome', zh: '欢迎' },
  load: () => import('./Welcome.svelte'),
  menu: { section: 'account', order: 90, icon: Sparkles },
  words: 'start tour first help',
} satisfies Page;
