/** Names of things and fields that come as words of the interface, in Chinese. */
export const RESOURCE: Readonly<Record<string, string>> = { cpu: 'CPU 核', memory: '内存', gpu: 'GPU' };

export const KIND: Readonly<Record<string, string>> = {
  pool: '资源池', domain: '域', queue: '队列', policy: '策略', mechanism: '定价方式', node: '节点', user: '用户', group: '组', version: '版本', job: '作业', token: '令牌',
  nodes: '节点', pools: '资源池', domains: '域', queues: '队列', policies: '策略', users: '用户', groups: '组', jobs: '作业', 'waiting jobs': '等待中的作业', 'data set': '数据集',
  alternatives: '备选方案', requests: '请求', 'value steps': '价值阶段', dependencies: '前置作业', 'dependencies of an array': '前置作业', 'replicas on a node': '单节点副本数',
};
export const kind = (given: unknown) => KIND[String(given)] ?? String(given);

export const STATE: Readonly<Record<string, string>> = { waiting: '等待中', promised: '已承诺', running: '运行中', stopping: '停止中', ended: '已结束' };

/** What quotas are counted in: the unit, and how many of the server's units make one of it. */
export const UNIT: Readonly<Record<string, readonly [string, number]>> = {
  cores: ['个 CPU 核', 1], 'milli-cores': ['个 CPU 核', 1000],
  'GiB of memory': ['GiB 内存', 1], 'MiB of memory': ['GiB 内存', 1024],
  gpus: ['个 GPU', 1], 'milli-gpus': ['个 GPU', 1000],
  'core hours': ['核时', 1], 'milli-core hours': ['核时', 1000],
  'GiB hours of memory': ['GiB 时', 1], 'MiB hours of memory': ['GiB 时', 1024],
  'gpu hours': ['GPU 时', 1], 'milli-gpu hours': ['GPU 时', 1000],
  credits: ['信用点', 1], 'micro-credits': ['信用点', 1_000_000],
};

const NAMED = '请用 1 到 63 个字符（字母、数字、“.”、“_”、“-”），以字母或数字开头';
const COUNTED = '请填写数量，例如 500m、2 或 16Gi';
const EARLIER = '请填写早于现在和结束时间的开始时间';

/** What a field is called, and what it takes. */
export const FIELD: Readonly<Record<string, readonly [string, string]>> = {
  name: ['名称', NAMED],
  project: ['项目', NAMED],
  queue: ['队列', NAMED],
  policy: ['策略', NAMED],
  pool: ['资源池', NAMED],
  domain: ['域', NAMED],
  password: ['密码', '请用 10 个以上字符，且不同于用户名'],
  old: ['当前密码', '请重新输入'],
  label: ['标签', '请缩短，且不要使用控制字符'],
  scopes: ['权限', '请至少选择一项，且不超出您自己的权限'],
  valid_s: ['有效期', '请填写允许范围内的时长'],
  credits: ['信用点', '请填写 0 或更大的数'],
  cpu: ['CPU 核', COUNTED],
  memory: ['内存', COUNTED],
  gpu: ['GPU', COUNTED],
  cpu_hours: ['核时', '数值过大：请减少'],
  gpu_hours: ['GPU 时', '数值过大：请减少'],
  resources: ['资源', COUNTED],
  gpus: ['GPU 总数', '请填写副本数或 GPU 总数之一'],
  gpus_max: ['GPU 上限', '请填写 0 或更大的数'],
  share: ['份额', '请填写 0 到 100%'],
  'keep.share': ['保留份额', '请填写 0 到 100%'],
  array: ['批量', '请填写起止序号，例如 0-99'],
  after: ['前置作业', '请填写作业编号'],
  hold: ['保留', '请填写保留或价值之一'],
  ask: ['需求', '请说明需要什么'],
  'work.command': ['命令', '请填写要运行的命令，例如 python train.py'],
  'work.env': ['环境变量', '最多 256 个、共 128 KiB，名称不能以 ERA_ 开头'],
  'work.inputs': ['数据集', '最多 64 个，挂载路径须在工作目录之内'],
  'work.image': ['镜像', '请从列表中选择，或填写镜像地址'],
  limits: ['分级界限', '请填写 1 到 16 个递增的整数，以逗号分隔'],
  order: ['排序方式', '请从列表中选择'],
  version: ['版本', '该版本未保留：请从列表中选择'],
  maintenance: ['维护时段', '请按先后填写、互不重叠、且在将来结束'],
  stop_at: ['停止时间', '请填写有效的时间，且仅用于排空'],
  node: ['节点', '它已失联，本就不接收作业：待它恢复后再操作'],
  rates: ['单价', '请填写 0 或更大的数'],
  capacity: ['容量', '超出单个节点的上限'],
  'quota period': ['配额周期', '请填写大于零的时长'],
  slot: ['时段长度', '请填写 1 秒到 1 天'],
  horizon: ['预订范围', '请填写一个时段到 366 天，且时段不超过 1048576 个'],
  grace: ['宽限时间', '请填写 0 秒到 1 天'],
  lease: ['租约时间', '请填写 0 秒到 1 天'],
  run_min: ['最短运行时间', '请填写 0 秒到 1 天'],
  hold_for: ['保留时间', '请填写 0 秒到 1 天'],
  extend_by: ['延长步长', '请填写 1 秒到 3660 天'],
  patience: ['等待上限', '请填写 1 秒到 3660 天'],
  period: ['周期', '请填写 1 秒到 3660 天'],
  fair_half_life: ['公平份额半衰期', '请填写 1 秒到 3660 天'],
  remember: ['保留记录时间', '请填写 1 秒到 3660 天'],
  remember_max: ['保留记录数', '请填写 1 到 1000000'],
  refund_unused: ['未用退款比例', '请填写 0 到 100%'],
  refund_broken: ['违约退款比例', '请填写 0 到 100%'],
  queue_density: ['队列价格倍数', '请填写不超过基价 1000 倍的数'],
  'market.ceiling': ['价格上限', '请填写不超过基价 1000 倍的数'],
  'market.floor': ['价格下限', '不得高于上限'],
  'market.surge': ['浮动范围', '请填写 0 < 低 ≤ 高'],
  'market.density': ['固定价格倍数', '请填写不超过基价 1000 倍的数'],
  density: ['固定价格倍数', '该定价方式没有此参数，或数值超出范围'],
  low: ['最低倍数', '该定价方式没有此参数，或数值超出范围'],
  high: ['最高倍数', '该定价方式没有此参数，或数值超出范围'],
  url: ['地址', '请填写完整的 http 或 https 地址'],
  events: ['事件', '请至少选择一项，各一次'],
  below: ['价格', '请同时选择资源池'],
  shared_with: ['共享对象', '请填写已有的用户名'],
  path: ['路径', '请用不含 “..” 的相对路径'],
  from: ['开始时间', EARLIER],
  step_s: ['步长', '请填写更长的步长'],
  cursor: ['翻页位置', '请从第一页重新开始'],
  limit: ['条数', '请填写 1 到 1000'],
  state: ['状态', '请从列表中选择'],
};
