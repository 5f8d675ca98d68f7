import type { Translation } from '../words';
import type en from '../en/ui';

export default {
  close: '关闭',
  cancel: '取消',
  copy: '复制',
  copied: '已复制',
  copyByHand: '浏览器不允许本页复制：请选中文本后手动复制。',
  tryAgain: '重试',
  unreachable: '服务器没有应答。请确认服务器正在运行且网络可用；本页会自动重试。',
  requestId: (id: string) => `请求编号 ${id}`,
  loading: '加载中',
  selectAll: '全选',
  selectRow: (name: string) => `选择 ${name}`,
  rows: (count: string) => `${count} 行`,
  sortBy: (name: string) => `按${name}排序`,
  commands: '命令',
  typeCommand: '页面、作业、数据集、节点、资源池或命令…',
  searching: '正在搜索…',
  nothingFound: '没有匹配的内容。',
  more: '更多',
} satisfies Translation<typeof en>;
