/** How a job stands and why it waits, in Chinese. */
import { momentToSecond, number } from '../../format';
import { amount, at, milli, money, n, share, type Parameters, type Sayings } from '../values';
import { REFUSED } from './refused';
import { RESOURCE } from './nouns';

export const STANDS = {
  waits: (position: number, why: string) => (position > 0 ? `排在队列第 ${number(position)} 位：${why}。` : `等待中：${why}。`),
  promised: (start: string) => `已有承诺：${momentToSecond(start)} 开始。`,
  running: (since: string) => `自 ${momentToSecond(since)} 起运行。`,
};

/** A refusal within a reason. */
const refused = (refusal: unknown): string | undefined =>
  typeof refusal === 'object' && refusal !== null ? REFUSED[String((refusal as Parameters)['code'])]?.(refusal as Parameters) : undefined;

/** Why a job does not start now. */
export const WHY: Sayings = {
  not_before: ({ until }) => `不得早于 ${at(until)} 开始`,
  after: ({ job, when }) => (when === 'any' ? `等待作业 ${job} 结束` : `等待作业 ${job} 成功`),
  array_full: ({ running }) => `其批量作业已有 ${n(running)} 个在运行，达到上限`,
  queue_full: ({ running }) => `其队列已有 ${n(running)} 个作业在运行，达到上限`,
  queue_gpus: ({ held, most }) => `其队列已占用 ${milli(held)} 个 GPU，上限为 ${milli(most)} 个`,
  share_used: ({ share: used }) => `其队列已用完集群的 ${share(used)} 份额，且有其他队列在等待`,
  quota: ({ refusal }) => refused(refusal),
  never_fits: ({ refusal }) => {
    const why = refused(refusal);
    return why === undefined ? undefined : `${why}；等待更大的节点加入`;
  },
  funds: ({ balance, needed }) => `钱包余额 ${money(balance)}，运行到时限最多需要 ${money(needed)}：请管理员发放信用点`,
  short: ({ resource, free, needed }) => `${RESOURCE[String(resource)] ?? String(resource)}不足：空闲 ${amount(resource, free)}，需要 ${amount(resource, needed)}`,
  fragmented: () => '总量足够，但不在同一组合适的节点上',
  behind: ({ ahead }) => (ahead === 0 ? '会推迟某个承诺，或由其他队列优先服务的作业' : `会推迟某个承诺或排在前面的作业：前面有 ${n(ahead)} 个`),
  next_pass: () => '将在下一次调度时开始',
};
