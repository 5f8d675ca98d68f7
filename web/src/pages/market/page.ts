import { ChartCandlestick } from 'lucide';
import type { Page } from '../../shell/page';

export default {
  path: '/market',
  title: { en: 'Market', zh: '市场' },
  load: () => import('./Market.svelte'),
  menu: { section: 'platform', order: 5, icon: ChartCandlestick },
  words: 'price fare calendar demand forecast alert 价格 日历 需求 提醒',
} satisfies Page;
