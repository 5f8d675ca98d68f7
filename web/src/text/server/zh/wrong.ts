/** What is wrong with a field, in Chinese. */
import { number } from '../../format';
import { n, type Parameters, type Sayings } from '../values';
import { FIELD, RESOURCE } from './nouns';

/** What a field of the interface is called on the page. */
export const called = (field: unknown) => RESOURCE[String(field)] ?? entry(field)?.[0] ?? String(field);

/** Fields of parts are known by their own names too. */
const entry = (field: unknown) => FIELD[String(field)] ?? FIELD[String(field).split('.').at(-1) ?? ''];

const quoted = (given: unknown) => `“${String(given)}”`;

export const WRONG: Sayings = {
  name: ({ given }) => `${quoted(given)} 不能作名称：请用 1 到 63 个字符（字母、数字、“.”、“_”、“-”、“/”），以字母或数字开头`,
  title: ({ given }) => `${quoted(given)} 不能作名称显示：请用 1 到 63 个任意文字的字符，首尾不留空格，不含换行、控制字符和方向标记`,
  account_name: ({ given }) => `${quoted(given)} 不能作账户名：请用 1 到 63 个小写字母、数字、“.”、“_”、“-”，以字母或数字开头`,
  text: ({ most }) => `请填写 1 到 ${n(most)} 个字符，不含控制字符`,
  blanks: ({ most }) => `请填写 1 到 ${n(most)} 个字符，不含空格`,
  line: ({ most }) => `请填写一行，1 到 ${n(most)} 个字符`,
  word: () => '没有此名称：可用名称见文档',
  password_length: ({ least, most }) => `请用 ${n(least)} 到 ${n(most)} 个字符`,
  password_guessable: () => '太容易被猜到：不要用账户名或单个重复的字母',
  url: () => '请填写完整的公开 http 或 https 地址，最长 2048 个字符，不含用户名和密码',
  range: ({ least, most }) => `请填写 ${n(least)} 到 ${n(most)}`,
  load: () => `请填写 ${number(0.01, 2)} 到 ${n(10)}`,
  negative: ({ given, key, text }) => `${key === undefined ? '' : `${called(key)} `}${String(given ?? text)} 不能为负：请填写 0 或更大的数`,
  uncountable: () => '数值过大，无法计算：请减少',
  too_many: ({ most }) => `最多 ${n(most)} 个`,
  indices: () => '请填写起始序号、不小于它的结束序号和步长',
  period: ({ days }) => `开始时间须早于结束时间和现在，最长 ${n(days)} 天`,
  missing: () => '缺少此项：请填写',
  not_both: ({ one, other }) => `“${called(one)}”与“${called(other)}”只能填写一项`,
  neither: ({ one, other }) => `请填写“${called(one)}”或“${called(other)}”，或两项都填`,
  price_alert: () => '价格提醒需要同时选择资源池和价格',
  drain_only: () => '只有排空时才能设置停止时间',
  no_parameter: ({ mechanism }) => `定价方式 ${String(mechanism)} 没有此参数：请去掉`,
  events: () => '请至少选择一项，各一次',
  own_machine: () => '此名称留给服务器本机的令牌：请换一个',
  scopes: () => '请至少选择一项，且不超出您自己的权限',
  comma: () => '此处的公式不能含逗号',
  unknown: ({ given, meant, known }) => `没有 ${quoted(given)}：${typeof meant === 'string' ? `是否指 ${meant}？` : `已有 ${Array.isArray(known) && known.length > 0 ? known.join('、') : '无'}`}`,
  no_job: () => '没有该作业',
  cursor: () => '请从第一页重新开始',
  event_id: () => '请填写事件编号，例如 12.0',
  no_command: () => '请填写要运行的命令，例如 python train.py',
  no_program: () => '程序名为空：请填写',
  long_command: ({ most, kib }) => `最多 ${n(most)} 个参数、共 ${n(kib)} KiB：请把其余部分放进代码文件`,
  zero_byte: () => '参数中含有零字节：请去掉',
  large_environment: ({ most, kib }) => `最多 ${n(most)} 个变量、共 ${n(kib)} KiB`,
  variable_start: ({ given }) => `${quoted(given)} 不能作变量名：须以字母或 “_” 开头`,
  variable_letters: ({ given }) => `${quoted(given)} 不能作变量名：只用字母、数字和 “_”`,
  variable_reserved: ({ given }) => `${quoted(given)}：以 ERA_ 开头的变量由平台设置`,
  variable_zero: ({ given }) => `变量 ${quoted(given)} 的值含有零字节：请去掉`,
  secret_name: ({ given }) => `${quoted(given)} 不能作密钥名：须以大写字母或 “_” 开头，其余用大写字母、数字和 “_”，最多 64 个字符，且不以 ERA_ 开头`,
  secret_value: ({ kib }) => `请填写 1 字节到 ${n(kib)} KiB，不含零字节`,
  no_secret: ({ given }) => `没有密钥 ${quoted(given)}：请先用 era secret set ${String(given)} 设置`,
  secret_twice: ({ given }) => `${quoted(given)} 出现了两次：请只保留在环境变量或密钥中的一处`,
  path_length: ({ given, most }) => `${quoted(given)} 不是路径：请用 1 到 ${n(most)} 字节`,
  path_absolute: ({ given }) => `${quoted(given)} 须是工作目录下的相对路径，用 “/” 分隔`,
  path_control: ({ given }) => `${quoted(given)} 含有控制字符`,
  path_steps: ({ given }) => `${quoted(given)} 不能含空的一级、“.” 或 “..”`,
  path_kept: ({ given }) => `${quoted(given)}：outputs/ 和 checkpoints/ 归作业自己使用，请换一个路径`,
  no_images: ({ given }) => `此处的任务是普通进程，不会在镜像 ${quoted(given)} 中运行：请去掉镜像，或改用以 --executor docker://… 启动的服务器`,
  no_terminals: () => '此处的任务没有终端：请去掉 --pty（terminal），或改用在本机以进程运行任务的服务器（era up）',
  many_tasks: ({ most }) => `日志的任务超过 ${n(most)} 个：请选择一次尝试或一个副本`,
  unreadable: ({ key, text }) => `${called(key)} ${quoted(text)} 不是数量：请填写例如 2、0.5、500m 或 16Gi`,
  out_of_range: ({ key, text }) => `${called(key)} ${quoted(text)} 超出范围：请减少，且不要细于千分之一`,
  few_bytes: ({ key, text, bytes, meant }) => `${called(key)} ${quoted(text)} 是 ${String(bytes)} 字节：请填写 ${String(meant)}i 或 ${String(meant)}`,
  broken_gpu: ({ text }) => `${quoted(text)} 既不是一块 GPU 的一部分，也不是整数：请填 0.5 或 2`,
  too_many_devices: () => '设备种类过多：最多 8 种',
  misread: ({ given, meant }) => (typeof given === 'string' ? `没有 ${quoted(given)}${typeof meant === 'string' ? `，是否指 ${meant}？` : ''}` : undefined),
  unread: ({ given, meant, line, column }) => {
    const place = `（第 ${n(line)} 行第 ${n(column)} 列）`;
    if (typeof given !== 'string') return undefined;
    return `没有 ${quoted(given)}${typeof meant === 'string' ? `，是否指 ${meant}？` : ''}${place}`;
  },
};

/** A wrong field in a sentence: exactly what is wrong where that is told, and otherwise what the field takes. */
export function fieldText(given: Parameters): string {
  const [field, rule] = entry(given['field']) ?? [];
  const wrong = WRONG[String(given['problem'])]?.(given) ?? rule;
  return wrong === undefined ? `字段 ${String(given['field'])} 的内容不对：请检查` : `“${field ?? String(given['field'])}”不对：${wrong}`;
}
