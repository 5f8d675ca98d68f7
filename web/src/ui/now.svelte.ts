/** The present, once a second, for countdowns and ages. It stands still while nobody looks. */
import { createSubscriber } from 'svelte/reactivity';

const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, 1000);
  return () => clearInterval(timer);
});

export function now(): number {
  subscribe();
  return Date.now();
}
