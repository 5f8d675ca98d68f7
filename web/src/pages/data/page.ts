import { Database } from 'lucide';
import type { Page } from '../../shell/page';

export default [
  {
    path: '/data',
    title: { en: 'Data', zh: '数据' },
    load: () => import('./DataSets.svelte'),
    menu: { section: 'work', order: 30, icon: Database },
    words: 'data sets files upload folder share',
  },
  {
    path: '/data/:owner/:name',
    title: { en: 'Data set', zh: '数据集' },
    load: () => import('./DataSet.svelte'),
  },
] satisfies Page[];
