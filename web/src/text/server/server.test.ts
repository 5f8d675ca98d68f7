import { afterEach, expect, it } from 'vitest';
import { locale } from '../locale.svelte';
import { eventText, problemText, whyText } from '.';

const problem = (code: string, parameters: Record<string, unknown> = {}) => ({ code, parameters, message: 'as the server says' });
const waiting = (why: string, parameters: Record<string, unknown>, position = 3) => ({ state: 'waiting', sentence: 'as the server says', why, parameters, position });

afterEach(() => (locale.language = 'en'));

it('English readers get the server’s own sentence', () => {
  expect(problemText(problem('no_room'))).toBe('as the server says');
  expect(whyText(waiting('behind', { ahead: 2 }))).toBe('as the server says');
});

it('Chinese readers get the same by its code, with its numbers', () => {
  locale.language = 'zh';
  expect(problemText(problem('funds', { balance: 1_500_000, needed: 20_000_000 }))).toBe('钱包余额 1.50，此项需要 20.00：请减少需求，或申请信用点');
  expect(whyText(waiting('behind', { ahead: 2 }))).toBe('排在队列第 3 位：会推迟某个承诺或排在前面的作业：前面有 2 个。');
  expect(whyText(waiting('after', { job: 12, when: 'any' }, 0))).toBe('等待中：等待作业 12 结束。');
  expect(whyText(waiting('short', { resource: 'gpu', free: 500, needed: 2000 }))).toContain('空闲 0.5，需要 2');
  expect(whyText(waiting('quota', { refusal: { code: 'funds', balance: 0, needed: 1_000_000 } }))).toContain('需要 1.00');
});

it('what no word is known for stays as the server said it', () => {
  locale.language = 'zh';
  expect(problemText(problem('something_new'))).toBe('as the server says');
  expect(whyText(waiting('something_new', {}))).toBe('as the server says');
  expect(whyText(waiting('quota', {}))).toBe('as the server says');
});

it('what happened is named in Chinese, and its particulars stay as the server told them', () => {
  const told = { event: 'queued', sentence: 'waits in queue default' };
  expect(eventText(told)).toEqual({ what: 'waits in queue default', more: undefined });
  locale.language = 'zh';
  expect(eventText(told)).toEqual({ what: '进入队列', more: 'waits in queue default' });
  expect(eventText({ event: 'new_kind', sentence: 'something' })).toEqual({ what: 'something', more: undefined });
});
