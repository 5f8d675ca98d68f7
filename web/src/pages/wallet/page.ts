import { WalletCards } from 'lucide';
import type { Page } from '../../shell/page';

export default {
  path: '/wallet',
  title: { en: 'Wallet', zh: '钱包' },
  load: () => import('./Wallet.svelte'),
  menu: { section: 'account', order: 10, icon: WalletCards },
  words: 'balance credits statement spending budget quota chargeback bill csv',
} satisfies Page;
