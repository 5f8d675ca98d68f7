/** Counter-offers as changes of a draft: what a button does. */
import type { CounterOffers } from '../../api/types';
import type { Draft } from './draft';
import { localTime, localTimeUp, writeSpan } from './spans';

/** A value that wins at a price: at least the price, and never less than was said. */
function atLeast(value: string, price: string): string {
  return value.trim() === '' || Number(value) >= Number(price) ? value : price;
}

export function takeValue(draft: Draft, value: string): Draft {
  return { ...draft, value };
}

export function takeWindow(draft: Draft, offer: NonNullable<CounterOffers['window']>): Draft {
  const early = draft.from !== '' && Date.parse(offer.start) < new Date(draft.from).getTime();
  return {
    ...draft,
    from: early ? localTime(offer.start) : draft.from,
    by: localTimeUp(offer.finish),
    value: atLeast(draft.value, offer.price),
  };
}

export function takeSize(draft: Draft, offer: NonNullable<CounterOffers['size']>): Draft {
  const value = atLeast(draft.value, offer.offer.price);
  if (typeof draft.more['gpus'] === 'number') return { ...draft, value, more: { ...draft.more, gpus: offer.replicas } };
  return { ...draft, value, replicas: String(offer.replicas) };
}

export function takeDuration(draft: Draft, offer: NonNullable<CounterOffers['duration']>): Draft {
  return { ...draft, time: writeSpan(offer.duration_s), value: atLeast(draft.value, offer.offer.price) };
}
