/** The hash of a file, computed by a worker where it is long enough to be felt. */
import { hashOf } from './hash';
import type { Told } from './hash.worker';

/** Below this a worker takes longer to start than the hash itself. */
const SHORT_BYTES = 512 * 1024;

export function hashBeside(file: Blob, signal: AbortSignal): Promise<string> {
  if (file.size < SHORT_BYTES) return hashOf(file, undefined, signal);
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const worker = new Worker(new URL('./hash.worker.ts', import.meta.url), { type: 'module' });
    const settle = (settled: () => void) => {
      worker.terminate();
      signal.removeEventListener('abort', stop);
      settled();
    };
    const stop = () => settle(() => reject(new DOMException('stopped', 'AbortError')));
    signal.addEventListener('abort', stop);
    worker.addEventListener('message', (event: MessageEvent<Told>) => {
      const told = event.data;
      settle(() => ('hash' in told ? resolve(told.hash) : reject(new Error(told.problem))));
    });
    worker.addEventListener('error', (event) => settle(() => reject(new Error(event.message))));
    worker.postMessage(file);
  });
}
