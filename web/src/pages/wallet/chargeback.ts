/** What members of groups spent in a period, each group's sum before its lines: pure. */
import type { Schemas } from '../../api/types';

export type Chargeback = Schemas['Chargeback'];

export interface Line {
  group: string;
  /** Absent on a group's own line. */
  user: string | undefined;
  project: string | undefined;
  charged: number;
  refunded: number;
  net: number;
  gpuHours: number;
  cpuHours: number;
  memoryHours: number;
}

type Amounts = Omit<Line, 'group' | 'user' | 'project'>;
const NOTHING: Amounts = { charged: 0, refunded: 0, net: 0, gpuHours: 0, cpuHours: 0, memoryHours: 0 };

function plus(a: Amounts, b: Amounts): Amounts {
  return Object.fromEntries(Object.keys(NOTHING).map((key) => [key, a[key as keyof Amounts] + b[key as keyof Amounts]])) as unknown as Amounts;
}

/** Each group's line, then its members' by project as the server orders them; the dearest group first. */
export function lines(all: readonly Chargeback[]): Line[] {
  const groups = all.map(({ group, lines: own }) => {
    const members = own.map(
      (line): Line => ({
        group,
        user: line.user,
        project: line.project ?? undefined,
        charged: Number(line.charged),
        refunded: Number(line.refunded),
        net: Number(line.net),
        gpuHours: line.gpu_hours,
        cpuHours: line.cpu_hours,
        memoryHours: line.memory_hours,
      }),
    );
    const sum: Line = { group, user: undefined, project: undefined, ...members.map(({ group: _, user: __, project: ___, ...amounts }) => amounts).reduce(plus, NOTHING) };
    return { sum, members };
  });
  groups.sort((a, b) => b.sum.net - a.sum.net || a.sum.group.localeCompare(b.sum.group));
  return groups.flatMap(({ sum, members }) => [sum, ...members]);
}

export type PeriodId = 'period' | 'month' | 'last-month' | '30' | '90';

/** The period that a choice means, by the reader's calendar; the server's own where there is one. */
export function periodOf(id: PeriodId, now: number, own: { from: string; to: string } | undefined): { from: string; to: string } {
  const month = (ahead: number) => new Date(new Date(now).getFullYear(), new Date(now).getMonth() + ahead, 1);
  const to = new Date(now);
  const [from, until] =
    id === 'month' ? [month(0), to]
    : id === 'last-month' ? [month(-1), month(0)]
    : id === 'period' && own ? [new Date(own.from), to]
    : [new Date(now - Number(id === '90' ? 90 : 30) * 86_400_000), to];
  return { from: from.toISOString(), to: until.toISOString() };
}
