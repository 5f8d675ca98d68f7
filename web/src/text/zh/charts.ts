import type { Translation } from '../words';
import type en from '../en/charts';

export default {
  time: '时间',
  step: '步',
  ganttHint: (rows: number, bars: number) => `${rows} 行，${bars} 个条目。方向键移动，加减号缩放，Home 键显示全部；Shift 加方向键选择条目，Enter 打开。`,
  noBar: '无',
  noValue: '无数值',
  readValues: (chart: string) => `${chart}的数值`,
  readHow: '方向键逐个读取数值，加减号缩放，Escape 显示全部。',
  awaited: '服务器应答后将显示此图表。',
  failed: '此图表无法加载：请刷新页面。',
} satisfies Translation<typeof en>;
