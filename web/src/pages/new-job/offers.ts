/** Counter-offers as changes of a draft: what a button does. */
import type { CounterOffers } from '../../api/types';
import { mostOf, type Draft } from './draft';
import { localTime, localTimeUp, writeSpan } from './spans';

/** A value that wins at a price: at least the price, and never less than was said. */
function atLeast(value: string, price: string): string {
  return value.trim() === '' || Number(value) >= Number(price) ? value : price;
}

/** A draft whose limit of cost, where it has one, does not stand in the way of a price. */
function affording(draft: Draft, price: string): Draft {
  const most = mostOf(draft);
  return most === undefined || Number(most) >= Number(price) ? draft : { ...draft, more: { ...draft.more, most: price } };
}

export function takeValue(draft: Draft, value: string): Draft {
  return { ...affording(draft, value), value };
}

export function takeWindow(draft: Draft, offer: NonNullable<CounterOffers['window']>): Draft {
  const early = draft.from !== '' && Date.parse(offer.start) < new Date(draft.from).getTime();
  return {
    ...affording(draft, offer.price),
    from: early ? localTime(offer.start) : draft.from,
    by: localTimeUp(offer.finish),
    value: atLeast(draft.value, offer.price),
  };
}

export function takeSize(draft: Draft, offer: NonNullable<CounterOffers['size']>): Draft {
  const value = atLeast(draft.value, offer.offer.price);
  const able = affording(draft, offer.offer.price);
  if (typeof draft.more['gpus'] === 'number') return { ...able, value, more: { ...able.more, gpus: offer.replicas } };
  return { ...able, value, replicas: String(offer.replicas) };
}

export function takeDuration(draft: Draft, offer: NonNullable<CounterOffers['duration']>): Draft {
  return { ...affording(draft, offer.offer.price), time: writeSpan(offer.duration_s), value: atLeast(draft.value, offer.offer.price) };
}
