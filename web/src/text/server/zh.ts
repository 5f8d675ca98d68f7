/**
 * What the server says in English sentences, in Chinese, by their stable codes: of refusals and of
 * reasons to wait. Each is a function of the parameters that come with the code; nothing where it
 * cannot be said, and then the server's own sentence stands.
 */
import { credits, duration, moment, number, percent } from '../format';

type Parameters = Readonly<Record<string, unknown>>;
type Sayings = Readonly<Record<string, (given: Parameters) => string | undefined>>;

const n = (given: unknown) => number(Number(given));
/** Money comes in millionths of a credit, time in milliseconds, shares in thousandths. */
const money = (given: unknown) => credits(Number(given) / 1e6);
const at = (given: unknown) => moment(Number(given));
const span = (given: unknown) => duration(Number(given) / 1000);
const share = (given: unknown) => percent(Number(given) / 1000);
const milli = (given: unknown) => number(Number(given) / 1000, 3);
const RESOURCE: Readonly<Record<string, string>> = { cpu: 'CPU 核', memory: '内存', gpu: 'GPU' };
const amount = (resource: unknown, given: unknown) => (resource === 'memory' ? `${number(Number(given) / 1024, 1)} GiB` : milli(given));
const KIND: Readonly<Record<string, string>> = { pool: '资源池', domain: '域', queue: '队列', policy: '策略', mechanism: '定价方式', node: '节点' };
const kind = (given: unknown) => KIND[String(given)] ?? String(given);

/** How a job stands. */
export const STANDS = {
  waits: (position: number, why: string) => (position > 0 ? `排在队列第 ${number(position)} 位：${why}。` : `等待中：${why}。`),
  promised: (start: string) => `已有承诺：${moment(start)} 开始。`,
  running: (since: string) => `自 ${moment(since)} 起运行。`,
};

/** Why a job does not start now. */
export const WHY: Sayings = {
  not_before: ({ until }) => `不得早于 ${at(until)} 开始`,
  after: ({ job, when }) => (when === 'any' ? `等待作业 ${job} 结束` : `等待作业 ${job} 成功`),
  array_full: ({ running }) => `其批量作业已有 ${n(running)} 个在运行，达到上限`,
  queue_full: ({ running }) => `其队列已有 ${n(running)} 个作业在运行，达到上限`,
  queue_gpus: ({ held, most }) => `其队列已占用 ${milli(held)} 个 GPU，上限为 ${milli(most)} 个`,
  share_used: ({ share: used }) => `其队列已用完集群的 ${share(used)} 份额，且有其他队列在等待`,
  quota: ({ refusal }) => (typeof refusal === 'object' && refusal !== null ? REFUSED[String((refusal as Parameters)['code'])]?.(refusal as Parameters) : undefined),
  funds: ({ balance, needed }) => `钱包余额 ${money(balance)}，运行到时限最多需要 ${money(needed)}`,
  short: ({ resource, free, needed }) => `${RESOURCE[String(resource)] ?? String(resource)}不足：空闲 ${amount(resource, free)}，需要 ${amount(resource, needed)}`,
  fragmented: () => '总量足够，但不在同一组合适的节点上',
  behind: ({ ahead }) => `会推迟某个承诺或排在前面的作业：前面有 ${n(ahead)} 个`,
  next_pass: () => '将在下一次调度时开始',
};

/** Why something was refused. */
export const REFUSED: Sayings = {
  bad_duration: ({ given, most }) => `时长 ${span(given)} 超出范围：请大于零且不超过 ${span(most)}`,
  bad_replicas: ({ min, max, most }) => `副本数 ${n(min)}..${n(max)} 超出范围：请填 1 到 ${n(most)}，大数在后`,
  nothing_asked: () => '没有请求任何资源：请填写 CPU 核、内存、GPU 或设备',
  broken_gpu: ({ given }) => `${milli(given)} 个 GPU 既不是一块的一部分，也不是整数：请填 0.5 或 2`,
  gpu_filter_without_gpu: () => '指定 GPU 型号或显存时需要 GPU：请填写数量',
  too_large: () => '总量过大，无法计算：请减少',
  bad_window: () => '时间窗口为空或超出范围：截止时间应晚于开始时间',
  window_past: ({ deadline }) => `截止时间 ${at(deadline)} 已过：请填更晚的时间`,
  beyond_horizon: ({ earliest, limit }) => `最早开始时间 ${at(earliest)} 太远：报价只到 ${at(limit)}`,
  window_too_short: ({ window, duration: needed }) => `窗口只剩 ${span(window)}，短于时长 ${span(needed)}：请推迟截止时间或缩短时长`,
  bad_array: ({ count, most }) => `${n(count)} 个作业的批量超出范围：请填 1 到 ${n(most)} 个，且同时至少运行 1 个`,
  unknown_before: ({ job }) => `没有可等待的作业 ${job}，或它早已结束：若它已按预期结束，请去掉`,
  failed_before: ({ job }) => `作业 ${job} 没有成功，因此永远不会开始：请重新运行它，或改为等待任何结束`,
  bad_value: ({ given, most }) => `价值 ${money(given)} 超出范围：请填 0 到 ${money(most)}`,
  rising_value: () => '价值只能随时间下降：后面的阶段应更晚且不更高',
  unknown: ({ kind: of, name, known }) => `没有名为 “${String(name)}” 的${kind(of)}：已有 ${Array.isArray(known) && known.length > 0 ? known.join('、') : '无'}`,
  unknown_node: ({ node }) => `没有节点 ${node}，或它已离开`,
  unknown_job: ({ job }) => `没有作业 ${job}，或它早已结束`,
  unknown_hold: () => '该保留不存在或已过期：请重新询价',
  no_room: () => '时间窗口内没有空位：请放宽窗口，或减少需求',
  too_dear: ({ price, value }) => `最便宜的时段为 ${money(price)}，高于其价值 ${money(value)}：请至少出此价，或放宽窗口`,
  price_rose: ({ price, most }) => `现价 ${money(price)}，高于先前同意的 ${money(most)}：请接受新价，或放弃`,
  level_share: ({ level, share: part, pool }) => `级别 ${level} 同时最多可预订资源池 ${String(pool)} 的 ${share(part)}：请减少、改期或换池`,
  quota_concurrent: ({ what, limit, held, asked }) => `同时最多可占用 ${n(limit)} ${String(what)}：已占用 ${n(held)}，此项需要 ${n(asked)}：请减少需求，或换个时间`,
  quota_period: ({ what, limit, used, asked }) => `本周期最多可用 ${n(limit)} ${String(what)}：已用 ${n(used)}，此项需要 ${n(asked)}：请减少需求，或申请更多配额`,
  funds: ({ balance, needed }) => `钱包余额 ${money(balance)}，此项需要 ${money(needed)}：请减少需求，或申请信用点`,
  bad_amount: ({ given, most }) => `金额 ${money(given)} 超出范围：请大于 0 且不超过 ${money(most)}`,
  too_many_holds: ({ most }) => `同时最多保留 ${n(most)} 个：请接受其中一个，或等它过期`,
  not_yours: ({ job }) => `作业 ${job} 属于他人：只有所有者和管理员可以操作`,
  exists: ({ name }) => `“${String(name)}” 已存在：请换一个名称`,
  node_busy: ({ jobs }) => `该节点仍有运行中的任务或无处可移的承诺${Array.isArray(jobs) && jobs.length > 0 ? `（${jobs.join('、')}）` : ''}：请先排空并等待`,
  key_reused: () => '该密钥已用于另一请求：请使用新的密钥',
  limit: ({ limit }) => `已达到 ${n(limit)} 的上限：请等待，或先移除一个`,
  unauthenticated: () => '请先登录：凭证未知、已过期或已撤销',
  wrong_login: () => '用户名或密码不正确',
  wrong_password: () => '当前密码不正确',
  throttled: () => '尝试过于频繁：请稍候再试',
  forbidden: () => '您无权执行此操作：请联系管理员',
  not_found: () => '没有您可以查看的此项：请先查看列表',
  busy: () => '服务器繁忙：请稍候再试',
  stopped: () => '调度器已停止：请稍候再试',
  internal: () => '服务器内部出错：其日志中有此请求的编号',
  last_administrator: () => '这是最后一位管理员：请先任命另一位',
  too_many_tokens: () => '令牌数量已达上限：请先撤销一个',
  too_many_listeners: () => '监听者过多：请稍后再试',
  too_many_runs: () => '等待中的实验已达上限：请稍后再试',
};

/** What happened to a job, by the kind of its event; the server's sentence has the particulars. */
export const HAPPENED: Readonly<Record<string, string>> = {
  refused: '被拒绝',
  bid_declined: '出价未被接受',
  promised: '已获承诺',
  queued: '进入队列',
  ready: '所等待的作业已结束',
  held: '报价已保留',
  hold_ended: '保留已结束',
  moved: '移到其他节点，开始时间不变',
  launched: '已发往节点',
  running: '开始运行',
  stopping: '已通知停止',
  task_ended: '一个副本已结束',
  requeued: '重新排队，保留等待时间和检查点',
  replanned: '因硬件故障重新安排',
  broken: '承诺无法兑现，已退款',
  extended: '已延长',
  resized: '副本数已变化',
  ended: '已结束',
  edited: '已由所有者修改',
  checkpointed: '已保存进度',
  idle_reported: 'GPU 处于空闲',
};
