/** What happened to a job and how it ended, in Chinese. */
import { number } from '../../format';
import { at, lasting, money, n, slot, slots, span, type Parameters, type Sayings, type Slot } from '../values';
import { REFUSED } from './refused';

const nodes = ({ nodes: named, more }: Slot) => (named.length === 0 ? '' : `${named.join('、')}${more > 0 ? ` 等 ${number(named.length + more)} 个节点` : ''}`);
const place = (given: Slot) => [lasting(given), nodes(given)].filter(Boolean).join('，');

const WHY_STOPPED: Readonly<Record<string, (code: unknown) => string>> = {
  cancelled: () => '已被取消',
  released: () => '剩余时间已归还',
  limit: () => '时间已到',
  preempted: () => '让出资源，重新等待',
  lost: () => '其硬件已丢失',
  drained: () => '其节点正在排空，将在别处继续',
  failed: (code) => `有任务以代码 ${code} 退出`,
};

/** How a job ended. */
export const ENDED: Sayings = {
  succeeded: () => '成功：所有任务都以代码 0 退出。',
  failed: ({ code }) => `失败：有任务以代码 ${code} 退出。`,
  out_of_memory: () => '失败：使用的内存超过申请量，请申请更多。',
  out_of_disk: () => '失败：写入的磁盘超过限额，请减少写入或申请提高限额。',
  not_started: () => '失败：未能启动，原因见日志。',
  cancelled: () => '已取消。',
  unfulfilled: ({ job }) => `已放弃：作业 ${job} 须先成功，但它没有成功。`,
  released: () => '结束：剩余时间已归还。',
  limit_reached: () => '结束：时间已到。',
  broken: () => '承诺无法兑现：其硬件不再可用，且时间窗口内没有空位。已退款。',
};

/** What happened to a job, by the kind of its event. */
export const HAPPENED: Sayings = {
  refused: ({ refusal }) => {
    const why = REFUSED[String((refusal as Parameters | undefined)?.['code'])]?.((refusal ?? {}) as Parameters);
    return why === undefined ? '被拒绝' : `被拒绝：${why}`;
  },
  bid_declined: ({ price }) => (price === undefined ? '出价未被接受：没有空位' : `出价未被接受：${money(price)} 信用点可成交`),
  promised: ({ price, slots: all }) => `已获承诺，价格 ${money(price)} 信用点：${slots(all).map(place).join('；然后 ')}`,
  queued: ({ queue, count }) => (Number(count) > 1 ? `${n(count)} 个作业进入队列 ${queue}` : `进入队列 ${queue}`),
  ready: () => '所等待的作业已结束',
  held: ({ price, expires }) => `${money(price)} 信用点的报价已保留到 ${at(expires)}`,
  hold_ended: () => '保留已结束',
  hold_moved: () => '保留的位置移到了其他节点',
  moved: ({ rank, from, to }) => `副本 ${rank} 从 ${from} 移到 ${to}，开始时间不变`,
  launched: ({ attempt, slot: given }) => {
    const where = slot(given);
    return where && `已发往 ${nodes(where)}${Number(attempt) > 1 ? `（第 ${n(attempt)} 次尝试）` : ''}，最晚到 ${at(where.to)}`;
  },
  running: ({ attempt }) => (Number(attempt) > 1 ? `再次运行（第 ${n(attempt)} 次尝试）` : '开始运行'),
  stopping: ({ why, code, until }) => `已通知在 ${at(until)} 前停止：${WHY_STOPPED[String(why)]?.(code) ?? String(why)}`,
  task_ended: ({ rank, code }) => (code === undefined ? `副本 ${rank} 已丢失` : `副本 ${rank} 以代码 ${code} 退出`),
  part_done: ({ part }) => `第 ${n(Number(part) + 1)} 部分已结束`,
  requeued: () => '重新排队，保留等待时间和检查点',
  replanned: ({ slot: given }) => {
    const where = slot(given);
    return where && `因硬件不再可用而重新安排：${place(where)}`;
  },
  broken: () => '承诺无法兑现，已退款：其硬件不再可用，且时间窗口内没有空位',
  extended: ({ to, price }) => `已延长到 ${at(to)}，费用 ${money(price)} 信用点`,
  resized: ({ replicas }) => `现有 ${n(replicas)} 个副本`,
  ended: (given) => ENDED[String(given['outcome'])]?.(given),
  posted: ({ amount }) => `${money(amount)} 信用点入账`,
  edited: () => '已由所有者修改',
  checkpointed: ({ done_ms }) => `已保存进度：${span(done_ms)} 的工作无需重做`,
  idle_reported: ({ released }) => (released === true ? 'GPU 空闲，已按所有者的许可归还' : 'GPU 处于空闲'),
  ignored: () => '一条过时的报告没有改变任何事',
};
