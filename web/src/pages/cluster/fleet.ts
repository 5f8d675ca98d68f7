/** The cluster's nodes as a map shows them: how much of each is used, in which group it stands. Pure. */
import type { Node } from '../../api/types';

const UNITS: Record<string, number> = { '': 1, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };

/** An amount as resources are written, such as `500m` or `16Gi`, in its base unit; 0 where it is none. */
export function amount(written: string | undefined): number {
  const [, digits = '', unit = ''] = /^([\d.]+)([A-Za-z]*)$/.exec(written ?? '') ?? [];
  const factor = UNITS[unit];
  return digits === '' || factor === undefined ? 0 : Number(digits) * factor;
}

export type Resource = 'cpu' | 'memory' | 'gpu';

export function share(node: Node, resource: Resource): number {
  const whole = amount(node.capacity[resource]);
  return whole === 0 ? 0 : amount(node.allocated[resource]) / whole;
}

/** The share that colours a node: of its GPUs where it has any, else of its cores. */
export function use(node: Node): number {
  return share(node, node.gpus.length > 0 ? 'gpu' : 'cpu');
}

/** In which of five steps of use something is: nothing, some, half, most, all. */
export function step(share: number): 0 | 1 | 2 | 3 | 4 {
  if (share <= 0) return 0;
  if (share >= 0.999) return 4;
  return share < 0.34 ? 1 : share < 0.67 ? 2 : 3;
}

export type Standing = 'up' | 'cordoned' | 'draining' | 'lost' | 'maintenance';

/** How a node stands now: an absence that has begun counts before its health. */
export function standing(node: Node, now: number): Standing {
  if (node.health === 'lost') return 'lost';
  if (node.maintenance.some(({ from, to }) => Date.parse(from) <= now && now < Date.parse(to))) return 'maintenance';
  return node.health === 'draining' || node.health === 'cordoned' ? node.health : 'up';
}

export type Grouping = 'pool' | 'domain' | 'rack';

/** A rack is a field of a node, or a label where the executor only knows labels. */
export function rackOf(node: Node): string | undefined {
  return node.rack ?? node.labels.rack;
}

export interface Group {
  /** Empty for those that are in none. */
  name: string;
  nodes: Node[];
}

const plainly = new Intl.Collator('en', { numeric: true });

/** Nodes by group, groups and nodes by name with numbers as numbers; those in no group last. */
export function grouped(nodes: readonly Node[], by: Grouping): Group[] {
  const groups = new Map<string, Node[]>();
  for (const node of nodes) {
    const name = (by === 'pool' ? node.pool : by === 'domain' ? node.domain : rackOf(node)) ?? '';
    const inside = groups.get(name);
    if (inside) inside.push(node);
    else groups.set(name, [node]);
  }
  return [...groups]
    .map(([name, inside]) => ({ name, nodes: inside.sort((a, b) => plainly.compare(a.name, b.name)) }))
    .sort((a, b) => Number(a.name === '') - Number(b.name === '') || plainly.compare(a.name, b.name));
}

/** Nodes of a pool whose name, rack, domain or jobs fit what was typed. */
export function found(nodes: readonly Node[], typed: string, pool: string | undefined, nameOf: (job: number) => string | undefined): Node[] {
  const wanted = typed.trim().toLowerCase();
  const fits = (text: string | null | undefined) => text?.toLowerCase().includes(wanted) ?? false;
  return nodes.filter(
    (node) =>
      (!pool || node.pool === pool) &&
      (wanted === '' ||
        [node.name, node.domain, rackOf(node), ...node.gpus.slice(0, 1).map((gpu) => gpu.model)].some(fits) ||
        node.jobs.some((job) => wanted === `#${job}` || fits(nameOf(job)))),
  );
}

export interface Counts {
  nodes: number;
  up: number;
  cordoned: number;
  draining: number;
  lost: number;
  maintenance: number;
  gpus: number;
  gpusUsed: number;
  cores: number;
  coresUsed: number;
}

export function counted(nodes: readonly Node[], now: number): Counts {
  const counts: Counts = { nodes: nodes.length, up: 0, cordoned: 0, draining: 0, lost: 0, maintenance: 0, gpus: 0, gpusUsed: 0, cores: 0, coresUsed: 0 };
  for (const node of nodes) {
    counts[standing(node, now)] += 1;
    counts.gpus += node.gpus.length;
    counts.gpusUsed += node.gpus.reduce((sum, gpu) => sum + Math.min(1, gpu.allocated), 0);
    counts.cores += amount(node.capacity.cpu);
    counts.coresUsed += amount(node.allocated.cpu);
  }
  return counts;
}

/**
 * GPUs as one background: a cell each, filled from below by its share, so that a thousand nodes are
 * a thousand elements. Cells are spread by percentages, which leaves equal gaps between them.
 */
export function strip(shares: readonly number[]): string {
  const count = shares.length;
  const size = `calc(${100 / Math.max(1, count)}% - 2px) 100%`;
  return shares
    .map((share, index) => {
      const filled = `${Math.round(Math.max(0, Math.min(1, share)) * 100)}%`;
      const at = count > 1 ? `${(index / (count - 1)) * 100}%` : '0%';
      return `linear-gradient(to top, var(--used) ${filled}, var(--unused) ${filled}) ${at} 0 / ${size} no-repeat`;
    })
    .join(', ');
}
