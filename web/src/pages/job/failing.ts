/** Which task a failed job failed by. Pure. */
import type { Schemas } from '../../api/types';

type Task = Schemas['Task'];

/** Of the last attempt the first that ended with another code than 0; those that were stopped because of it come after. */
export function failing(tasks: readonly Task[]): Task | undefined {
  const last = Math.max(...tasks.map((task) => task.attempt));
  const failed = tasks.filter((task) => task.attempt === last && (task.exit_code ?? 0) !== 0);
  const own = failed.filter((task) => task.cause !== 'stopped');
  return (own.length > 0 ? own : failed).toSorted((a, b) => Date.parse(a.ended ?? '') - Date.parse(b.ended ?? ''))[0];
}
