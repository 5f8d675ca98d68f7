/** What accounts used in this period, gathered by group: pure. */
import type { User } from '../../accounts/everyone';

export interface ChargebackLine {
  group: string;
  /** Absent on a group's own line. */
  user: string | undefined;
  gpuHours: number;
  cpuHours: number;
  memoryHours: number;
  credits: number;
  bytes: number;
}

type Amounts = Omit<ChargebackLine, 'group' | 'user'>;

function amounts(user: User): Amounts {
  const { used } = user;
  return { gpuHours: used.gpu_hours ?? 0, cpuHours: used.cpu_hours ?? 0, memoryHours: used.memory_hours ?? 0, credits: Number(used.credits ?? 0), bytes: used.storage_bytes ?? 0 };
}

function plus(a: Amounts, b: Amounts): Amounts {
  return {
    gpuHours: a.gpuHours + b.gpuHours,
    cpuHours: a.cpuHours + b.cpuHours,
    memoryHours: a.memoryHours + b.memoryHours,
    credits: a.credits + b.credits,
    bytes: a.bytes + b.bytes,
  };
}

const NOTHING: Amounts = { gpuHours: 0, cpuHours: 0, memoryHours: 0, credits: 0, bytes: 0 };

/** Each group's line, then its accounts, those that spent most first. */
export function chargeback(users: readonly User[]): ChargebackLine[] {
  const groups = new Map<string, User[]>();
  for (const user of users) groups.set(user.group, [...(groups.get(user.group) ?? []), user]);
  const sums = [...groups].map(([group, members]) => ({ group, members, sum: members.map(amounts).reduce(plus, NOTHING) }));
  sums.sort((a, b) => b.sum.credits - a.sum.credits || a.group.localeCompare(b.group));
  return sums.flatMap(({ group, members, sum }) => {
    const lines = members.map((user): ChargebackLine => ({ group, user: user.name, ...amounts(user) }));
    lines.sort((a, b) => b.credits - a.credits || (a.user ?? '').localeCompare(b.user ?? ''));
    return [{ group, user: undefined, ...sum }, ...lines];
  });
}
