/** What is wrong with a formula, in Chinese. */
import { n, type Sayings } from '../values';

const found = (given: unknown) => (given === undefined || given === null ? '结尾' : String(given));

/** What others write, and what is written here. */
const INSTEAD: Readonly<Record<string, string>> = {
  '&': '请写 and',
  '|': '请写 or',
  '!': '请写 not，比较时写 !=',
  '=': '比较请写 ==',
  "'": '文本请用双引号',
  '.': '小数点前请写数字，例如 0.5',
  '^': '没有乘方：请用乘法',
  '%': '没有取余：请用除法',
  '?': '请写 if(条件, a, b)',
};

export const FAULT: Sayings = {
  too_long: ({ most }) => `公式过长：最多 ${n(most)} 个字符`,
  empty: () => '公式为空：请至少写一个数，例如 0',
  too_deep: ({ most }) => `嵌套过深：最多 ${n(most)} 层`,
  too_many_held: ({ most }) => `此处等待运算的值超过 ${n(most)} 个：请先写嵌套部分，例如 (a * b) + c`,
  too_large: ({ most }) => `公式过大：最多 ${n(most)} 步运算`,
  expected_operator: ({ found: given }) => `此处应为运算符或结尾，却是 ${found(given)}`,
  expected_operand: ({ found: given }) => `此处应为数、名称或 “(”，却是 ${found(given)}`,
  unclosed: ({ open, found: given }) => `第 ${n(open)} 个字符处的 “(” 缺少 “)”，此处是 ${found(given)}`,
  unclosed_call: ({ name, open, found: given }) => `第 ${n(open)} 个字符处的 ${String(name)}( 缺少 “,” 或 “)”，此处是 ${found(given)}`,
  no_fraction: ({ whole }) => `${String(whole)}. 的小数点后没有数字：请写 ${String(whole)}`,
  too_fine: ({ number }) => `${String(number)} 过细：最多 6 位小数`,
  out_of_range: ({ number, most }) => `${String(number)} 超出范围：最大为 ${String(most)}`,
  exponent: ({ number, most }) => `${String(number)} 含有指数：请写成普通数字，最大为 ${String(most)}`,
  glued_name: ({ number }) => `${String(number)} 不是数：请在数与名称之间写运算符`,
  two_points: ({ number }) => `${String(number)} 不是数：最多一个小数点`,
  open_text: () => '文本没有结束：请用 " 结束',
  bad_text: () => '此文本不可能匹配：请用 1 到 63 个字母、数字、“.”、“_”、“-” 或 “/”',
  unquoted: ({ attr, word }) => `文本请加引号：${String(attr)} == "${String(word)}"`,
  texts_have_no_order: () => '文本没有大小：请用 == 或 != 比较',
  text_is_no_number: () => '文本不是数：请与引号中的文本比较，例如 field == "vision"',
  strange: ({ given }) => `${String(given)} 在此没有意义：${INSTEAD[String(given)] ?? '请写数、名称、双引号中的文本和运算符'}`,
  chained: () => '比较不能连写：请写 a < b and b < c',
  loose_not: () => 'not 的优先级低：请加括号，例如 1 + (not a)',
  not_called: ({ name, signature }) => `${String(name)} 是函数：${String(signature)}`,
  no_function: ({ name }) => `${String(name)} 不是函数：请在 “(” 前写运算符`,
  arguments: ({ given, signature }) => `给了 ${n(given)} 个参数：请写 ${String(signature)}`,
  not_finite: ({ name }) => `${String(name)} 在此不是数：请写有限的数字`,
  no_truth: ({ name }) => `此处没有 ${String(name)}：请写 1 或 0`,
  unknown_name: ({ name, meant }) => `没有名为 ${String(name)} 的数、文本或函数${meant ? `（是否指 ${String(meant)}？）` : ''}：按 Ctrl-空格 查看全部`,
  divides_by_zero: () => '此处除以零：请除以别的数',
  backwards: ({ low, high }) => `clamp 的下限 ${String(low)} 高于上限 ${String(high)}：请先写较小的`,
  no_logarithm: ({ number }) => `${String(number)} 没有对数：请给大于 0 的数`,
  no_root: ({ number }) => `${String(number)} 没有平方根：请给 0 或更大的数`,
  beyond_range: ({ min, max }) => `无论什么作业此处都超出范围：应在 ${String(min)} 与 ${String(max)} 之间`,
  bad_setting: () => '请填写 1 到 16 个递增的整数，以逗号分隔',
};
