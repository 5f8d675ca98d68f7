/** What the server says is wrong with a draft, each problem at the control that it is about. */
import { ProblemError, type Problem } from '../../api/problem';

export type Field = 'name' | 'project' | 'command' | 'gpu' | 'gpuModel' | 'cpu' | 'memory' | 'replicas' | 'pool' | 'time' | 'from' | 'by' | 'value' | 'queue' | 'array' | 'after';

/** Fields of a job, and of what the scheduler makes of it, that have a control of their own. */
const CONTROLS: Readonly<Record<string, Field>> = {
  name: 'name', project: 'project', 'work.command': 'command',
  'resources.cpu': 'cpu', 'resources.memory': 'memory', 'resources.gpu': 'gpu', 'resources.gpu.model': 'gpuModel',
  'ask.replicas': 'replicas', replicas: 'replicas', 'constraints.pool': 'pool',
  'ask.duration_s': 'time', duration: 'time', window: 'by', value: 'value', queue: 'queue', array: 'array', after: 'after',
};

export interface Placed {
  /** By control. */
  at: Partial<Record<Field, ProblemError>>;
  /** What is about no control, or about one that shows another problem. */
  others: ProblemError[];
  /** Whether it cannot be priced as it is: what is run has no price. */
  unpriced: boolean;
  /** Whether it cannot be handed in as it is. */
  unfit: boolean;
  /** Whether nothing is said yet of what is run: that is no mistake. */
  noCommand: boolean;
}

const isOfWork = ({ field }: ProblemError) => field?.startsWith('work.') ?? false;

/** Amounts share a field, and say which of them they are about; a part of several GPUs is about those. */
function about({ field = '', parameters }: ProblemError): string {
  if (field !== 'resources') return field;
  return `resources.${parameters['problem'] === 'broken_gpu' ? 'gpu' : parameters['key']}`;
}

/** Each problem where it belongs. */
export function placed(problems: readonly Problem[]): Placed {
  const all = problems.map((problem) => new ProblemError(problem));
  const wrong = all.filter(({ parameters }) => parameters['problem'] !== 'no_command');
  const placed: Placed = { at: {}, others: [], unpriced: wrong.some((one) => !isOfWork(one)), unfit: all.length > 0, noCommand: wrong.length < all.length };
  for (const one of wrong) {
    const control = CONTROLS[about(one)];
    if (control !== undefined && placed.at[control] === undefined) placed.at[control] = one;
    else placed.others.push(one);
  }
  return placed;
}
