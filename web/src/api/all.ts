/** All of a list that the server gives page by page. */
const PAGE = 1000;

export async function all<T>(ask: (query: { limit: number; cursor?: string }) => Promise<{ items: T[]; next?: string | null }>): Promise<T[]> {
  const found: T[] = [];
  let next: string | undefined;
  do {
    const page = await ask({ limit: PAGE, ...(next !== undefined && { cursor: next }) });
    found.push(...page.items);
    next = page.next ?? undefined;
  } while (next !== undefined);
  return found;
}
