import type { Translation } from '../words';
import type en from '../en/charts';

export default {
  ganttHint: (rows: number, bars: number) => `${rows} 行，${bars} 个条目。方向键移动，加减号缩放，Home 键显示全部。`,
} satisfies Translation<typeof en>;
