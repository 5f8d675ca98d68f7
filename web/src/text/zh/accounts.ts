import type { Translation } from '../words';
import type en from '../en/accounts';

export default {
  gpu: '同时使用的 GPU',
  cpu: '同时使用的 CPU 核',
  memory: '同时使用的内存',
  gpu_hours: '本周期 GPU 小时',
  cpu_hours: '本周期核小时',
  memory_hours: '本周期 GiB 小时',
  credits: '预算',
  storage_bytes: '保存的数据',
  usedOf: (used: string, most: string, left: string) => `${used} / ${most}，剩余 ${left}`,
  usedOnly: (used: string) => `${used}，无上限`,
  until: (day: string) => `用时和信用点于 ${day} 重新计算。`,
  noLimits: '没有设置限额。管理员可以限制同时占用的资源，以及每个周期的机时和信用点。',
  user: '用户',
  group_administrator: '组管理员',
  administrator: '管理员',
} satisfies Translation<typeof en>;
