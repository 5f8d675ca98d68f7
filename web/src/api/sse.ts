/**
 * Server-sent events out of a stream of text, as a pure reader: text goes in as it comes, whole
 * messages come out. Comments are told too, because a heartbeat is one and silence means trouble.
 */
export interface Message {
  id: string | undefined;
  event: string;
  data: string;
}

/** Longest line that is kept; nothing that the server sends comes near it. */
const LINE_MAX = 1 << 20;

export class SseReader {
  private rest = '';
  private id: string | undefined;
  private event = '';
  private data: string[] = [];

  /** What the text completes. */
  read(text: string): Message[] {
    const messages: Message[] = [];
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = (lines.pop() ?? '').slice(0, LINE_MAX);
    for (const line of lines) {
      const message = this.line(line);
      if (message) messages.push(message);
    }
    return messages;
  }

  private line(line: string): Message | undefined {
    if (line === '') return this.flush();
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') this.data.push(value);
    else if (field === 'event') this.event = value;
    else if (field === 'id' && !value.includes('\0')) this.id = value;
    return undefined;
  }

  private flush(): Message | undefined {
    const message =
      this.data.length > 0 ? { id: this.id, event: this.event || 'message', data: this.data.join('\n') } : undefined;
    this.event = '';
    this.data = [];
    return message;
  }
}
