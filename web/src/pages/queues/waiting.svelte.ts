/** Who waits in a queue, in the order of service: in full where the reader may see it. */
import { api, call, clusterChanged, resource, type Schemas } from '../../api';

export interface Waiters {
  list: Schemas['Waiter'][];
  /** More wait than are shown. */
  more: boolean;
}

export function waiters(queue: () => string, shown: () => number) {
  return resource(
    async (signal): Promise<Waiters> => {
      const page = await call(api.GET('/api/v1/queues/{name}/waiting', { params: { path: { name: queue() }, query: { limit: Math.min(1000, shown()) } }, signal }));
      return { list: page.items, more: page.next != null };
    },
    { on: clusterChanged, everyMs: 30_000, burstMs: 2500 },
  );
}
