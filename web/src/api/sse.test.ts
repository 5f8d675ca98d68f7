import { describe, expect, it } from 'vitest';
import { SseReader } from './sse';

const stream = 'id: 12.0\nevent: promised\ndata: {"a":1}\n\n:alive\n\nevent: running\r\ndata: one\r\ndata: two\r\n\r\n';
const messages = [
  { id: '12.0', event: 'promised', data: '{"a":1}' },
  { id: '12.0', event: 'running', data: 'one\ntwo' },
];

describe('server-sent events', () => {
  it('come out whole', () => {
    expect(new SseReader().read(stream)).toEqual(messages);
  });

  it('are the same however the network cuts them', () => {
    for (let size = 1; size < 12; size += 1) {
      const reader = new SseReader();
      const read = [];
      for (let at = 0; at < stream.length; at += size) read.push(...reader.read(stream.slice(at, at + size)));
      expect(read, `pieces of ${size}`).toEqual(messages);
    }
  });

  it('without data are none: a heartbeat is no message', () => {
    expect(new SseReader().read(':alive\n\nevent: x\n\n')).toEqual([]);
  });
});
