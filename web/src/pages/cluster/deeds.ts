/** What an administrator does to nodes. What can be taken back offers to be, at once. */
import { api, call } from '../../api';
import { failed, told } from '../../ui';
import type { Window } from './windows';

export interface NodeEdit {
  action?: 'cordon' | 'drain' | 'resume' | 'leave';
  /** With a drain: when what still runs is stopped. */
  stop_at?: string;
  domain?: string;
  maintenance?: Window[];
}

/** Changes at a time, when many nodes are changed. */
const AT_ONCE = 4;

export function edit(name: string, body: NodeEdit): Promise<unknown> {
  return call(api.PATCH('/api/v1/nodes/{name}', { params: { path: { name } }, body }));
}

/** Does it, tells it with a way back, and says whether it was done. A dialog hears of a refusal itself: news lie under it. */
export async function change(name: string, body: NodeEdit, said: string, back?: { text: string; body: NodeEdit; said: string }, refused: (thrown: unknown) => void = failed): Promise<boolean> {
  try {
    await edit(name, body);
  } catch (thrown) {
    refused(thrown);
    return false;
  }
  told(said, back && { text: back.text, run: () => void change(name, back.body, back.said) });
  return true;
}

/** Moves nodes to domains, a few at a time; gives those that were moved, and tells the first refusal. */
export async function move(moves: readonly { node: string; domain: string }[]): Promise<string[]> {
  const left = [...moves];
  const moved: string[] = [];
  let problem: unknown;
  const work = async () => {
    for (let next = left.shift(); next && problem === undefined; next = left.shift()) {
      try {
        await edit(next.node, { domain: next.domain });
        moved.push(next.node);
      } catch (thrown) {
        problem = thrown;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (problem !== undefined) failed(problem);
  return moved;
}
