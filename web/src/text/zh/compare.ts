import type { Translation } from '../words';
import type en from '../en/compare';

export default {
  title: '对比作业',
  text: '指标叠加显示，参数与费用并列。',
  none: '没有可对比的作业',
  noneText: '在作业列表中选择两到八个作业，然后点“对比”。',
  toJobs: '前往作业列表',
  metrics: '指标',
  noMetrics: '这些作业都没有指标。',
  outcome: '结果与费用',
  parameters: '参数',
  onlyDifferent: '只显示不同项',
  what: '项目',
  state: '状态',
  ran: '运行时长',
  paid: '净费用',
  last: (metric: string) => `${metric} 末值`,
  same: '提交内容完全相同。',
  differs: '不同',
} satisfies Translation<typeof en>;
