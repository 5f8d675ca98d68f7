/**
 * Alerts on prices that this browser keeps: told on whatever page is open. The part that asks the
 * server is loaded only where there is an alert.
 */
import { Part } from '../api';
import { alerts } from './kept.svelte';

export { alerts } from './kept.svelte';

const watching = new Part('alerts', () => import('./watch'));

/** Watches as long as there is something to watch; ends with the function that it gives. */
export function keepWatch(): () => void {
  if (alerts.all.length === 0) return () => {};
  let end: (() => void) | undefined;
  let over = false;
  watching.get().then(
    ({ watch }) => {
      if (!over) end = watch();
    },
    () => {
      if (!over) end = watching.wait();
    },
  );
  return () => {
    over = true;
    end?.();
  };
}
