/** A job's resources in a few words, and how long it ran. */
import { quantity } from '../../accounts/quantity';
import type { JobSummary } from '../../api/types';
import { bytes, number } from '../../text/format';

interface Words {
  gpus: (count: string) => string;
  cores: (count: string) => string;
  times: (count: string) => string;
}

/** An amount in the reader's way; what is no amount stays as it was written. */
function counted(given: string): string {
  const amount = quantity(given);
  return amount === undefined ? given : number(amount, 3);
}

function sized(given: string): string {
  const amount = quantity(given);
  return amount === undefined ? given : bytes(amount);
}

export function needs(job: Pick<JobSummary, 'resources' | 'replicas'>, words: Words): string {
  const { gpu, cpu, memory, 'gpu.model': model } = job.resources;
  const parts = [
    gpu && gpu !== '0' ? `${words.gpus(counted(gpu))}${model ? ` ${model}` : ''}` : undefined,
    cpu ? words.cores(counted(cpu)) : undefined,
    memory && sized(memory),
  ].filter(Boolean);
  const one = parts.join(', ');
  return job.replicas > 1 ? `${one} ${words.times(String(job.replicas))}` : one;
}

/** How long it ran, or has run so far. */
export function ranSeconds(job: Pick<JobSummary, 'started' | 'ended' | 'state'>, now = Date.now()): number | undefined {
  if (!job.started) return undefined;
  const end = job.ended ? Date.parse(job.ended) : now;
  return Math.max(0, (end - Date.parse(job.started)) / 1000);
}
