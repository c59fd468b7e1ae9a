import { createCtaCounters, type Amounts, type CtaCounters } from './counters.js';

type AmountsKey = {
  [Key in keyof CtaCounters]: CtaCounters[Key] extends Amounts ? Key : never;
}[keyof CtaCounters];

const amountsKeys = Object.entries(createCtaCounters())
  .filter(([, value]) => typeof value === 'object')
  .map(([key]) => key as AmountsKey);

function addTo(sums: Amounts, amounts: Amounts, factor: 1 | -1): void {
  for (const [name, amount] of Object.entries(amounts)) {
    const sum = (sums[name] ?? 0) + factor * amount;
    if (sum === 0) delete sums[name];
    else sums[name] = sum;
  }
}

/**
 * What several CTAs have done together, or one in several runs: amounts add up, and of the most that
 * was in use at a time the largest is taken. The sum of nothing is that of a CTA that did nothing.
 */
export function sumOfCounters(list: readonly CtaCounters[]): CtaCounters {
  const sum = createCtaCounters();
  for (const counters of list) {
    for (const key of amountsKeys) addTo(sum[key], counters[key], 1);
    sum.mostTensorColumns = Math.max(sum.mostTensorColumns, counters.mostTensorColumns);
    sum.mostSharedBytes = Math.max(sum.mostSharedBytes, counters.mostSharedBytes);
  }
  return sum;
}

/**
 * What a longer run has done beyond a shorter one; amounts that are equal are left out. Of runs that
 * differ in one block this is the block's work alone, without the beginning and the end. The most in
 * use at a time is the longer run's.
 */
export function differenceOfCounters(longer: CtaCounters, shorter: CtaCounters): CtaCounters {
  const difference = sumOfCounters([longer]);
  for (const key of amountsKeys) addTo(difference[key], shorter[key], -1);
  return difference;
}
