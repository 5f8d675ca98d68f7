import { expect, it } from 'vitest';
import { fallen, parsed } from './fallen';

const alerts = [{ pool: 'a', below: 5 }, { pool: 'b', below: 1 }];

it('an alert is told once each time its price falls below the limit', () => {
  const first = fallen(alerts, new Map([['a', 4], ['b', 1]]), new Set());
  expect(first.due).toEqual([alerts[0]]);
  const still = fallen(alerts, new Map([['a', 3]]), first.below);
  expect(still.due).toEqual([]);
  const risen = fallen(alerts, new Map([['a', 5]]), still.below);
  expect(risen.below.size).toBe(0);
  expect(fallen(alerts, new Map([['a', 4.99]]), risen.below).due).toEqual([alerts[0]]);
});

it('what was kept is read back, and anything else is not', () => {
  expect(parsed(JSON.stringify(alerts))).toEqual(alerts);
  for (const bad of [null, '', '{}', 'null', '[1,null,{"pool":1,"below":2},{"pool":"a","below":-1},{"pool":"a"}]']) expect(parsed(bad)).toEqual([]);
});
