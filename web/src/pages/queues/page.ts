import { ListOrdered } from 'lucide';
import type { Page } from '../../shell/page';

export default {
  path: '/queues',
  title: { en: 'Queues and policies', zh: '队列与策略' },
  load: () => import('./Queues.svelte'),
  menu: { section: 'platform', order: 15, icon: ListOrdered },
  words: 'waiting order formula priority level share policy version rollback 排队 公式 优先级 版本',
} satisfies Page;
