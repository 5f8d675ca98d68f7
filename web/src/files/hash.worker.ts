/** Hashes one file beside the page, which stays free to scroll meanwhile. */
import { hashOf } from './hash';

export type Told = { hash: string } | { problem: string };

addEventListener('message', (event: MessageEvent<Blob>) => {
  const tell = (told: Told) => postMessage(told);
  hashOf(event.data).then(
    (hash) => tell({ hash }),
    (thrown: unknown) => tell({ problem: thrown instanceof Error ? thrown.message : String(thrown) }),
  );
});
