import { afterEach, describe, expect, it } from 'vitest';
import { locale } from '../locale.svelte';
import { endText, eventText, faultText, problemText, whyText } from '.';

const problem = (code: string, parameters: Record<string, unknown> = {}, field?: string) => ({ code, parameters, field, message: 'as the server says' });
const waiting = (why: string, parameters: Record<string, unknown>, position = 3) => ({ state: 'waiting', sentence: 'as the server says', why, parameters, position });
const told = (event: string, parameters: Record<string, unknown> = {}) => ({ event, parameters, sentence: 'as the server says' });
const NOON = new Date(2030, 4, 6, 12, 0).getTime();
const slot = { from: NOON, to: NOON + 7_200_000, nodes: ['a1', 'a2'], more: 3 };

afterEach(() => (locale.language = 'en'));

describe('English', () => {
  it('is the server’s own sentence where that will do', () => {
    expect(problemText(problem('no_room'))).toBe('as the server says');
    expect(whyText(waiting('behind', { ahead: 2 }))).toBe('as the server says');
    expect(faultText({ code: 'empty', problem: 'as the server says' })).toBe('as the server says');
  });

  it('tells times in the reader’s zone, not in the server’s', () => {
    expect(eventText(told('promised', { price: 12_500_000, slots: [slot] }))).toMatch(/^Promised for 12\.50 credits: .*12:00.*–.*(14|2):00.* on a1, a2 and 3 more$/);
    expect(eventText(told('stopping', { why: 'drained', until: NOON }))).toMatch(/12:00.*: its node is drained; it goes on elsewhere$/);
    expect(problemText(problem('window_past', { deadline: NOON, now: NOON }))).toMatch(/12:00.* has passed/);
    expect(whyText(waiting('not_before', { until: NOON }))).toMatch(/position 3 .*12:00/);
  });
});

describe('a limit that is exceeded', () => {
  const budget = { scope: { group: 3 }, what: 'micro-credits', limit: 500_000, used: 450_000, asked: 60_000 };
  it('is told with whose it is, in whole units, and a budget as one', () => {
    const gpus = { scope: { user: 7 }, what: 'milli-gpus', limit: 1500, held: 500, asked: 2000 };
    expect(problemText(problem('quota_concurrent', gpus))).toBe('The account may hold 1.5 GPUs at once: 0.5 GPUs in use, and this asks for 2 GPUs. Ask for less, or for another time.');
    const hours = { scope: { group: 3 }, what: 'core hours', limit: 1, used: 1, asked: 4 };
    expect(problemText(problem('quota_period', hours))).toBe('The group may use 1 core-hour in a period: 1 core-hour used, and this asks for 4 core-hours. Ask for less, or for more quota.');
    expect(problemText(problem('quota_period', budget))).toBe('The group’s budget is 0.50 credits a period: 0.45 are spent, and this may cost 0.06. Ask for less, or for a larger budget.');
    expect(whyText(waiting('quota', { refusal: { code: 'quota_period', ...budget } }))).toMatch(/^It waits at position 3 of its queue: the group’s budget is 0\.50 credits a period.* larger budget\.$/);
    locale.language = 'zh';
    expect(problemText(problem('quota_period', budget))).toBe('该组每周期的预算为 0.50 信用点：已花费 0.45，此项最多需要 0.06：请减少需求，或申请更多预算');
  });
});

describe('Chinese', () => {
  it('says the same by its code, with its numbers', () => {
    locale.language = 'zh';
    expect(problemText(problem('funds', { balance: 1_500_000, needed: 20_000_000 }))).toBe('钱包余额 1.50，此项需要 20.00：请减少需求，或请管理员发放信用点');
    expect(problemText(problem('quota_concurrent', { what: 'milli-gpus', limit: 1500, held: 500, asked: 2000 }))).toContain('最多可占用 1.5 个 GPU：已占用 0.5 个 GPU');
    expect(whyText(waiting('behind', { ahead: 2 }))).toBe('排在队列第 3 位：会推迟某个承诺或排在前面的作业：前面有 2 个。');
    expect(whyText(waiting('after', { job: 12, when: 'any' }, 0))).toBe('等待中：等待作业 12 结束。');
    expect(whyText(waiting('short', { resource: 'gpu', free: 500, needed: 2000 }))).toContain('空闲 0.5，需要 2');
    expect(whyText(waiting('quota', { refusal: { code: 'funds', balance: 0, needed: 1_000_000 } }))).toContain('需要 1.00');
  });

  it('names no number of the core, and says what the largest node has', () => {
    locale.language = 'zh';
    expect(problemText(problem('unknown_node', { node: 7 }))).toBe('没有该节点，或它已离开：请查看节点列表中的名称');
    const never = (best: string) => problemText(problem('never_fits', { asked: 'gpu: 16', best }));
    expect(never('the largest node has 8 GPUs of 80Gi, 64 cores and 512Gi of memory; what one node has not is asked for as replicas, or as a total of GPUs')).toBe(
      '没有节点能容纳一个副本（gpu: 16），即使空闲也不行，最大的节点有 8 个 GPU（各 80Gi）、64 核、512Gi 内存，单个节点不足的部分可按副本或 GPU 总数申请：请减少需求，或换型号或资源池',
    );
    expect(never('the largest node has no GPUs, 2.5 cores and 3.5Gi of memory')).toContain('最大的节点有 0 个 GPU、2.5 核、3.5Gi 内存：');
    expect(never('there are no nodes')).toContain('目前没有任何节点');
    expect(never('nodes that could are not in the pool or domain')).toContain('缺少标签');
    expect(never('something new')).toBe('没有节点能容纳一个副本（gpu: 16），即使空闲也不行：请减少需求，或换型号或资源池');
  });

  it('says what a wrong field takes', () => {
    locale.language = 'zh';
    expect(problemText(problem('bad_field', {}, 'password'))).toMatch(/密码.*10 个以上/);
    expect(problemText(problem('bad_setting', { field: 'market.floor', problem: 'in English' }))).toBe('“价格下限”不对：不得高于上限');
    expect(problemText(problem('bad_field', {}, 'something_new'))).toContain('something_new');
    expect(problemText(problem('bad_field', { problem: 'something_new' }, 'password'))).toMatch(/密码.*10 个以上/);
  });

  it('says exactly what is wrong with a field, with its numbers', () => {
    locale.language = 'zh';
    expect(problemText(problem('bad_field', { problem: 'name', given: 'two words' }, 'project'))).toMatch(/^“项目”不对：“two words” 不能作名称/);
    expect(problemText(problem('bad_field', { problem: 'unreadable', key: 'gpu', text: 'many' }, 'resources'))).toMatch(/^“资源”不对：GPU “many” 不是数量/);
    expect(problemText(problem('bad_field', { problem: 'range', least: 1, most: 31_536_000 }, 'valid_s'))).toBe('“有效期”不对：请填写 1 到 31,536,000');
    expect(problemText(problem('bad_field', { problem: 'not_both', one: 'queue', other: 'value' }, 'queue'))).toBe('“队列”不对：“队列”与“价值”只能填写一项');
    expect(problemText(problem('bad_field', { problem: 'variable_reserved', given: 'ERA_X' }, 'work.env'))).toMatch(/^“环境变量”不对：“ERA_X”/);
    expect(problemText(problem('bad_field', { problem: 'no_images', given: 'torch:2.9' }, 'work.image'))).toMatch(/^“镜像”不对：.*“torch:2.9”.*请去掉镜像/);
    expect(problemText(problem('bad_field', { problem: 'refused', code: 'unknown', kind: 'mechanism', name: 'x', known: ['surge'] }, 'name'))).toBe('没有名为 “x” 的定价方式：已有 surge');
    expect(problemText(problem('bad_field', { problem: 'unread', line: 1, column: 8, given: 'memry', meant: 'memory' }, 'memry'))).toContain('是否指 memory');
    expect(problemText(problem('bad_run', { problem: 'comma' }, 'policies'))).toBe('“策略”不对：此处的公式不能含逗号');
  });

  it('tells what happened and how it ended with all that is known of it', () => {
    locale.language = 'zh';
    expect(eventText(told('queued', { queue: 'night', count: 1 }))).toBe('进入队列 night');
    expect(eventText(told('promised', { price: 12_500_000, slots: [slot] }))).toMatch(/价格 12\.50 信用点：.*12:00:00.*14:00:00，a1、a2 等 5 个节点/);
    expect(eventText(told('ended', { outcome: 'failed', code: 9 }))).toBe('失败：有任务以代码 9 退出。');
    expect(eventText(told('task_ended', { rank: 1 }))).toBe('副本 1 已丢失');
    expect(endText({ reason: 'in English', outcome: { code: 'unfulfilled', parameters: { job: 7 } } })).toContain('作业 7 须先成功');
  });

  it('tells what is wrong with a formula', () => {
    locale.language = 'zh';
    expect(faultText({ code: 'unknown_name', parameters: { name: 'wiat', meant: 'wait' } })).toContain('是否指 wait');
    expect(faultText({ code: 'strange', parameters: { given: '&' } })).toContain('请写 and');
    expect(faultText({ code: 'expected_operand', parameters: {} })).toContain('结尾');
  });

  it('leaves what no word is known for as the server said it', () => {
    locale.language = 'zh';
    expect(problemText(problem('something_new'))).toBe('as the server says');
    expect(whyText(waiting('something_new', {}))).toBe('as the server says');
    expect(whyText(waiting('quota', {}))).toBe('as the server says');
    expect(eventText(told('something_new'))).toBe('as the server says');
    expect(endText({ reason: 'as the server says' })).toBe('as the server says');
  });
});
