import { describe, expect, it } from 'vitest';
import {
  isBeyond,
  WorstStatistics,
  type ErrorStatistic,
} from '../../src/audit/structure/error-statistic.js';
import { statisticOf } from './gradients/definitions/made-judgements.js';

function worstOf(found: readonly ErrorStatistic[]): ErrorStatistic[] {
  const worst = new WorstStatistics();
  for (const one of found) worst.add(one);
  return worst.list();
}

describe('the worst statistics', () => {
  it('are those that use most of their threshold, the first of equals', () => {
    const half = statisticOf({ statistic: 1, threshold: 2, head: 1 });
    const alike = statisticOf({ statistic: -2, threshold: 4, head: 2 });
    const nothing = statisticOf({ statistic: 0, threshold: 0, head: 3 });
    const beyond = statisticOf({ statistic: 1e-300, threshold: 0, head: 4 });
    expect(worstOf([half, alike])).toEqual([half]);
    expect(worstOf([nothing, half])).toEqual([half]);
    expect(worstOf([half, beyond, nothing])).toEqual([beyond]);
  });

  it('are one of each test and scope that has a finite threshold', () => {
    const worst = statisticOf({ head: 1, statistic: -3, threshold: 4 });
    const tile = statisticOf({ scope: 'tile', statistic: 0, threshold: 0 });
    const none = statisticOf({ test: 'scale', threshold: Infinity });
    expect(worstOf([statisticOf(), worst, statisticOf({ head: 2 }), tile, none])).toEqual([
      worst,
      tile,
    ]);
    expect(() => worstOf([statisticOf({ statistic: NaN })])).toThrow('sum of head 0');
    expect(() => worstOf([statisticOf({ threshold: NaN })])).toThrow('threshold NaN');
  });
});

it.each([-3, -2, 2, 3])(
  'a statistic of %d is beyond a threshold of 2 on either side',
  (statistic) => expect(isBeyond({ statistic, threshold: 2 })).toBe(Math.abs(statistic) === 3),
);
