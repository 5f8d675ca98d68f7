import type { Translation } from '../words';
import type en from '../en/states';

export default {
  waiting: '排队中',
  promised: '已承诺',
  starting: '启动中',
  running: '运行中',
  stopping: '停止中',
  succeeded: '成功',
  failed: '失败',
  cancelled: '已取消',
  released: '已释放',
  limit_reached: '超时',
  broken: '承诺未兑现',
} satisfies Translation<typeof en>;
