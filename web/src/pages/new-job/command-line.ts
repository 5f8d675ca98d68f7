/** The same job as an `era run` line to copy. */
import { commandWords, quoted, type Draft } from './draft';
import { localTime } from './spans';

export function eraRun(draft: Draft): string {
  const words = ['era', 'run'];
  const flag = (name: string, given: string) => {
    // A number below zero would read as another flag.
    if (given.trim() !== '') words.push(...(given.trim().startsWith('-') ? [`--${name}=${quoted(given.trim())}`] : [`--${name}`, quoted(given.trim())]));
  };
  flag('name', draft.name);
  flag('project', draft.project);
  flag('gpu', draft.gpu === '0' ? '' : draft.gpu);
  flag('gpu-model', draft.gpuModel);
  flag('cpu', draft.cpu);
  flag('memory', draft.memory);
  for (const [name, amount] of Object.entries(draft.otherResources)) {
    if (name === 'gpu.memory') flag('gpu-memory', amount);
    else flag('device', `${name}=${amount}`);
  }
  flag('replicas', draft.replicas);
  flag('time', draft.time);
  if (draft.promise) {
    flag('from', draft.from === '' ? '' : localTime(draft.from));
    flag('by', draft.by === '' ? '' : localTime(draft.by));
    flag('value', draft.value);
  } else {
    flag('queue', draft.queue);
    flag('array', draft.array);
    flag('after', draft.after.replaceAll(' ', ''));
  }
  for (const key of ['gpus', 'most', 'overrun', 'priority']) {
    const given = draft.more[key];
    if (typeof given === 'string' || typeof given === 'number') flag(key, String(given));
  }
  if (draft.more['release_when_idle'] === true) words.push('--release-when-idle');
  flag('pool', draft.pool);
  if (draft.preemptible) words.push('--preemptible');
  for (const [name, value] of Object.entries(draft.env)) flag('env', `${name}=${value}`);
  for (const { data, path } of draft.inputs) flag('input', path === '' ? data : `${data}:${path}`);
  flag('image', draft.image);
  const command = commandWords(draft.command);
  return [...words, '--', ...(command.length > 0 ? command.map(quoted) : ['COMMAND'])].join(' ');
}
