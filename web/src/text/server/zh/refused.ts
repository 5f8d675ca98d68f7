/** Why something was refused, in Chinese. */
import { number } from '../../format';
import { at, milli, money, n, ofGroup, share, span, spending, type Sayings } from '../values';
import { kind, STATE, UNIT } from './nouns';
import { fieldText } from './wrong';

/** An amount of what a quota counts. */
const counted = (what: unknown, given: unknown) => {
  const [unit, size] = UNIT[String(what)] ?? [String(what), 1];
  return `${number(Number(given) / size, 3)} ${unit}`;
};

const who = (scope: unknown) => (ofGroup(scope) ? '该组' : '该账户');

/** What the largest node has, or why those that could hold it do not; the core says it in its own words alone. */
function largest(best: unknown): string {
  const told = String(best ?? '');
  const has = /^the largest node has (?:no GPUs|(\d+) GPUs of ([^,]+)), ([^,]+) cores and (.+?) of memory(; .+)?$/.exec(told);
  if (has) {
    const [, gpus, each, cores, memory, split] = has;
    return `，最大的节点有 ${gpus === undefined ? '0 个 GPU' : `${gpus} 个 GPU（各 ${each}）`}、${cores} 核、${memory} 内存${split ? '，单个节点不足的部分可按副本或 GPU 总数申请' : ''}`;
  }
  if (told.startsWith('there are no nodes')) return '，目前没有任何节点';
  return told.startsWith('nodes that could') ? '，能容纳的节点不在所选资源池或域中、缺少标签、留给更大的作业或更高级别，或不接受承诺' : '';
}

const field = (name: unknown) => fieldText({ field: name });

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
  bad_value: ({ given, most }) => `价值 ${money(given)} ${Number(given) < 0 ? '不能为负' : '超出范围'}：请填 0 到 ${money(most)}`,
  rising_value: () => '价值只能随时间下降：后面的阶段应更晚且不更高',
  unknown: ({ kind: of, name, known }) => name === undefined ? '没有此名称：请先查看列表' : `没有名为 “${String(name)}” 的${kind(of)}：已有 ${Array.isArray(known) && known.length > 0 ? known.join('、') : '无'}`,
  unknown_user: () => '没有该用户：请先创建账户',
  unknown_group: () => '没有该组：请先创建',
  unknown_node: () => '没有该节点，或它已离开：请查看节点列表中的名称',
  unknown_job: ({ job }) => job === undefined ? '没有您可以查看的该作业' : `没有作业 ${job}，或它早已结束`,
  unknown_hold: () => '该保留不存在或已过期：请重新询价',
  no_room: () => '时间窗口内没有空位：请放宽窗口，或减少需求',
  too_dear: ({ price, value }) => `最便宜的时段为 ${money(price)}，高于其价值 ${money(value)}：请至少出此价，或放宽窗口`,
  price_rose: ({ price, most }) => `现价 ${money(price)}，高于先前同意的 ${money(most)}：请接受新价，或放弃`,
  level_share: ({ level, share: part, pool }) => `级别 ${level} 同时最多可预订资源池 ${String(pool)} 的 ${share(part)}：请减少、改期或换池`,
  quota_concurrent: ({ scope, what, limit, held, asked }) => `${who(scope)}同时最多可占用 ${counted(what, limit)}：已占用 ${counted(what, held)}，此项需要 ${counted(what, asked)}：请减少需求，或换个时间`,
  quota_period: ({ scope, what, limit, used, asked }) => {
    const budget = spending(what, limit, used, asked);
    return budget
      ? `${who(scope)}每周期的预算为 ${budget.limit} 信用点：已花费 ${budget.used}，此项最多需要 ${budget.asked}：请减少需求，或申请更多预算`
      : `${who(scope)}本周期最多可用 ${counted(what, limit)}：已用 ${counted(what, used)}，此项需要 ${counted(what, asked)}：请减少需求，或申请更多配额`;
  },
  quota_sum: ({ what, sum, limit }) => `组内各部分之和将为 ${counted(what, sum)}，超过组的 ${counted(what, limit)}：请降低某一部分，或提高组的配额`,
  funds: ({ balance, needed }) => `钱包余额 ${money(balance)}，此项需要 ${money(needed)}：请减少需求，或请管理员发放信用点`,
  bad_amount: ({ given, most }) => `金额 ${money(given)} ${Number(given) < 0 ? '不能为负' : '超出范围'}：请大于 0 且不超过 ${money(most)}`,
  too_many_holds: ({ most }) => `同时最多保留 ${n(most)} 个：请接受其中一个，或等它过期`,
  not_yours: ({ job }) => job === undefined ? '它属于他人：只有所有者和管理员可以操作' : `作业 ${job} 属于他人：只有所有者和管理员可以操作`,
  exists: ({ name }) => name === undefined ? '该名称已存在：请换一个' : `“${String(name)}” 已存在：请换一个名称`,
  node_busy: ({ jobs }) => `该节点仍有运行中的任务或无处可移的承诺${Array.isArray(jobs) && jobs.length > 0 ? `（${jobs.join('、')}）` : ''}：请先排空并等待`,
  key_reused: () => '该密钥已用于另一请求：请使用新的密钥',
  limit: ({ what, limit }) => (limit === undefined ? '已达到数量上限：请先移除一个' : `已达到${kind(what)}的上限 ${n(limit)}：请等待，或先移除一个`),
  unauthenticated: () => '请先登录：凭证未知、已过期或已撤销',
  wrong_login: () => '用户名或密码不正确',
  wrong_password: () => '当前密码不正确',
  throttled: () => '尝试过于频繁：请稍候再试',
  forbidden: () => '您无权执行此操作：请联系管理员',
  not_found: () => '没有您可以查看的此项：请先查看列表',
  busy: () => '服务器繁忙：请稍候再试',
  stopped: () => '调度器已停止：请稍候再试',
  bad_gpu_total: () => 'GPU 总数按整块分配：每份请填 1 个 GPU',
  too_many: ({ what, given, most }) => (given === undefined ? '一次的数量过多：请分批进行' : `${kind(what)}数量 ${n(given)} 超出范围：请填 1 到 ${n(most)}`),
  bad_order: () => '各部分只能排在列于其前的部分之后：请按先后列出',
  not_with_bid: () => '出价作业不能使用批量或前置作业：请改为排队',
  no_array: ({ job }) => `作业 ${job} 不属于批量作业：请单独取消`,
  others_bid: () => '只能为自己出价',
  never_fits: ({ asked, best }) => `没有节点能容纳一个副本（${String(asked)}），即使空闲也不行${largest(best)}：请减少需求，或换型号或资源池`,
  gang_never_fits: ({ asked, most, each, pool, pools, within }) => `${typeof each === 'string' ? `请求 ${n(asked)} 个副本（${each}）` : `请求 ${n(asked)} 个 GPU`}，而${Number(pools) > 1 ? '作业只能在一个资源池中运行，可用的最大的' : ''}资源池 ${String(pool)} ${typeof each === 'string' ? '即使空闲也只能容纳' : '只有'} ${n(most)} 个${Array.isArray(within) && within.length > 0 ? `（${within.join('、')}）` : ''}：请减少`,
  not_group_admin: () => '您不是该组的管理员：请联系组管理员',
  wrong_state: ({ job, state }) => `作业 ${job} ${STATE[String(state)] ?? String(state)}，不能执行此操作`,
  in_use: ({ what, name }) => `${kind(what)} “${String(name)}” 仍在使用：请先清空`,
  bad_setting: ({ field: of }) => field(of),
  // One of the two is itself a refusal, by another part of the house.
  bad_field: (given) => (given['problem'] === 'refused' ? REFUSED[String(given['code'])]?.(given) : fieldText(given)),
  bad_formula: ({ at: place }) => `公式在第 ${n(place)} 个字符处有误：请先修正`,
  bad_forecast: () => '预测数据有误',
  bad_query: ({ field: of }) => (of === undefined ? '查询参数有误' : field(of)),
  bad_name: () => field('name'),
  bad_path: () => field('path'),
  bad_hash: () => '文件校验值有误：请重新上传',
  bad_cursor: () => field('cursor'),
  bad_json: () => '请求内容不是有效的 JSON',
  too_many_files: () => '文件过多：请打包小文件后再上传',
  too_many_shares: () => '共享对象过多：请改为对组或所有人可见',
  file_too_large: ({ limit }) => (limit === undefined ? '文件过大' : `文件过大：最大 ${number(Number(limit) / 2 ** 30)} GiB`),
  upload_busy: () => '该文件正由另一请求上传：请等它结束',
  too_many_uploads: () => '未完成的上传过多：请先完成一些',
  wrong_offset: () => '上传位置不符：请重试，它会从已有部分继续',
  hash_mismatch: () => '文件在传输中损坏或已改变：请重新上传',
  storage_quota: ({ used, limit }) => (limit === undefined ? '存储空间不足：请删除数据集或输出，或申请更多' : `已用 ${number(Number(used) / 2 ** 30, 1)} / ${number(Number(limit) / 2 ** 30, 1)} GiB，空间不足：请删除数据集或输出，或申请更多`),
  disk_full: () => '服务器磁盘已满：请稍后再试，或通知管理员',
  files_missing: () => '有文件尚未上传：请重新上传',
  wrong_size: () => '文件大小不符：请重新上传',
  unknown_blob: () => '没有该文件内容：请重新上传',
  unknown_tree: () => '没有该代码：请重新上传',
  unknown_data_set: () => '没有您可以查看的该数据集',
  unknown_file: () => '没有该文件：可能已被移除',
  unknown_account: () => field('shared_with'),
  unknown_run: () => '没有该实验：可能已被移除',
  name_taken: () => '该名称已被使用：请换一个',
  bad_run: fieldText,
  stopping: () => '服务器正在停止：请稍后再试',
  store: () => '服务器无法读写其文件：请通知管理员',
  not_ready: () => '服务器尚未就绪：请稍候再试',
  scope_missing: () => '该令牌只能读取：请使用有写权限的令牌',
  scope: () => '该令牌没有此权限',
  password_must_change: () => '请先设置新密码',
  csrf: () => '请刷新页面后再试',
  too_slow: () => '传输过慢：请检查网络后重试',
  broken_off: () => '传输中断：请重试，它会从已有部分继续',
  broken_body: () => '传输中断：请重试',
  outcome_unknown: () => '相同的请求正在处理：请稍候查看结果',
  no_engine: () => '没有可构建镜像的引擎：请联系管理员',
  engine_away: () => '构建镜像的引擎目前无法连接：请稍后再试，或联系管理员',
  no_registry: () => '没有可用的镜像仓库：请联系管理员',
  too_many_connections: () => '连接过多：请关闭一个，或稍后再试',
  too_many_followers: () => '查看者过多：请稍后再试',
  too_many_open: () => '此账户打开的连接过多：请关闭一些',
  no_terminal: () => '此作业没有可连接的终端：请在提交时使用 --pty（terminal: true）',
  not_running: () => '没有正在运行的任务可连接：请查看其日志或说明',
  unreachable: () => '服务器没有应答：请检查网络，然后重试',
  part_failed: () => '本页的这一部分无法加载：请刷新页面',
  internal: () => '服务器内部出错：其日志中有此请求的编号',
  shared_user: () => '服务器没有 root 权限，所有账户的作业都以同一用户运行，彼此的文件无法隔离：请以 root 启动，或在信任所有人时使用 --insecure-shared-user',
  last_administrator: () => '这是最后一位管理员：请先任命另一位',
  too_many_tokens: () => '令牌数量已达上限：请先撤销一个',
  too_many_listeners: () => '监听者过多：请稍后再试',
  too_many_runs: () => '等待中的实验已达上限：请稍后再试',
  no_leader: () => '调度器正在切换：请稍候再试',
  standby: () => '此服务器正在待命：请稍候再试，或访问主服务器',
  no_measures: () => '此服务器不收集指标',
  too_deep: () => '请求内容嵌套过深',
  too_much: () => '发送的内容多于声明的大小：请重新上传',
  not_json: () => '请求内容须为 JSON',
  bad_archive: () => '没有这种打包格式',
  bad_range: () => '请求的范围有误：请重试',
  bad_piece: () => '上传的一段有误：请重试',
  bad_message: () => '消息有误：请刷新页面后再试',
  bad_key: () => '请求的密钥有误：请使用 1 到 255 个字符',
  line_too_long: () => '一行过长：请缩短',
  no_such_path: () => '没有此地址',
  no_such_method: () => '此地址不支持该操作',
  no_websocket: () => '此地址需要 WebSocket 连接',
  upgrade_required: () => '此地址需要 WebSocket 连接',
};
