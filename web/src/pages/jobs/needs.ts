/** A job's resources in a few words, and how long it ran. */
import type { JobSummary } from '../../api/types';

interface Words {
  gpus: (count: string) => string;
  cores: (count: string) => string;
  times: (count: string) => string;
}

export function needs(job: Pick<JobSummary, 'resources' | 'replicas'>, words: Words): string {
  const { gpu, cpu, memory, 'gpu.model': model } = job.resources;
  const parts = [
    gpu && gpu !== '0' ? `${words.gpus(gpu)}${model ? ` ${model}` : ''}` : undefined,
    cpu ? words.cores(cpu) : undefined,
    memory,
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
