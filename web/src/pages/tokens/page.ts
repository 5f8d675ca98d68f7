import { KeyRound } from 'lucide';
import type { Page } from '../../shell/page';

export default {
  path: '/tokens',
  title: { en: 'Tokens', zh: '令牌' },
  load: () => import('./Tokens.svelte'),
  menu: { section: 'account', order: 20, icon: KeyRound },
  words: 'token api key command line sessions revoke',
} satisfies Page;
