import { Server } from 'lucide';
import type { Page } from '../../shell/page';

export default {
  path: '/cluster',
  title: { en: 'Cluster', zh: '集群' },
  load: () => import('./Cluster.svelte'),
  menu: { section: 'platform', order: 10, icon: Server },
  words: 'nodes gpu map gantt calendar promises domains drain maintenance 节点 域 维护',
} satisfies Page;
