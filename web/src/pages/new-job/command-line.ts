/** The same job as an `era run` line to copy. */
import { commandOf, KEPT_KEYS, mostOf, quoted, says, takesPrice, type Draft } from './draft';
import { localTime } from './spans';

/** Flags of what the form has no control for, by their keys in the YAML. */
const PLACES: Record<string, string> = { domain: 'domain', same: 'same', per_node_max: 'per-node-max' };
const FACTS: Record<string, string> = { field: 'field', framework: 'framework', network: 'network', parameters_k: 'parameters-k', data_mib: 'data-mib' };

export interface Line {
  text: string;
  /** Keys of the YAML that no flag says: the line leaves them out. */
  left: string[];
}

/** The line. */
export function eraRun(draft: Draft): Line {
  const words = ['era', 'run'];
  const left: string[] = [];
  const flag = (name: string, given: string) => {
    const said = name === 'env' ? given : given.trim();
    // A number below zero would read as another flag.
    if (said !== '') words.push(...(said.startsWith('-') ? [`--${name}=${quoted(said)}`] : [`--${name}`, quoted(said)]));
  };
  const simple = (given: unknown): given is string | number => typeof given === 'string' || typeof given === 'number';
  const flags = (key: string, names: Record<string, string>, other: (name: string, given: unknown) => boolean) => {
    const all = draft.more[key];
    if (typeof all !== 'object' || all === null) return;
    for (const [name, given] of Object.entries(all)) {
      const known = names[name];
      if (known !== undefined && simple(given)) flag(known, String(given));
      else if (!other(name, given)) left.push(`${key}.${name}`);
    }
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
  if (draft.promise !== false) {
    const stepped = draft.value.trim() === '' && Array.isArray(draft.more['value']);
    flag('from', draft.from === '' ? '' : localTime(draft.from));
    flag('by', draft.by === '' ? '' : localTime(draft.by));
    flag('value', draft.value);
    // Steps have no flag: the line then takes the price, as one does that says no value.
    if (stepped) left.push('value');
    flag('most', mostOf(draft) ?? '');
    if (stepped || takesPrice(draft)) words.push('--accept-price');
  }
  if (draft.promise !== true) {
    flag('queue', draft.queue);
    flag('array', draft.array);
    flag('after', draft.after.replaceAll(' ', ''));
  }
  if (simple(draft.more['gpus'])) flag('gpus', String(draft.more['gpus']));
  for (const key of KEPT_KEYS.filter((key) => says(draft, key))) {
    const [name, given] = [key.replaceAll('_', '-'), draft.more[key]];
    if (given === true) words.push(`--${name}`);
    else if (simple(given)) flag(name, String(given));
  }
  flag('pool', draft.pool);
  flags('constraints', PLACES, (name, given) => {
    if (name === 'spread' && given === true) words.push('--spread');
    else if (name === 'labels' && typeof given === 'object' && given !== null) {
      for (const [label, value] of Object.entries(given)) flag('label', `${label}=${value}`);
    } else return name === 'spread' && given === false;
    return true;
  });
  flags('attributes', FACTS, () => false);
  if (draft.preemptible) words.push('--preemptible');
  for (const [name, value] of Object.entries(draft.env)) flag('env', `${name}=${value}`);
  for (const name of (draft.more['secrets'] ?? []) as string[]) flag('secret', name);
  if (draft.more['terminal'] === true) words.push('--pty');
  for (const { data, path } of draft.inputs) flag('input', path === '' ? data : `${data}:${path}`);
  flag('image', draft.image);
  if (draft.code !== '') flag('code', '.');
  const command = commandOf(draft.command);
  return { text: [...words, '--', ...(command.length > 0 ? command.map(quoted) : ['COMMAND'])].join(' '), left };
}
