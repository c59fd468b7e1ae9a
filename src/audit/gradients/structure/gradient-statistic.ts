/**
 * Sums that roundings leave near zero and a bug does not: `scale` is the slope of a gradient on the exact one, less one;
 * `sum` the error of a column's sum over all rows of a head (for dV that Σ dV = Σ dO, for dK that Σ dS = 0); `pairing` the
 * difference of ⟨Q, dQ⟩ and ⟨K, dK⟩, which are the same number, relative to the sizes of their terms.
 */
export const gradientTests = ['scale', 'sum', 'pairing'] as const;
/** One of {@link gradientTests}. */
export type GradientTest = (typeof gradientTests)[number];

/** One statistic against its threshold. */
export interface GradientStatistic {
  readonly test: GradientTest;
  readonly scope: 'tile' | 'head';
  /** Counted over [batch, heads] of the gradient. */
  readonly head: number;
  /** First row and number of rows: of queries for dQ, of keys for dK and dV. */
  readonly firstRow: number;
  readonly rows: number;
  /** The last row: `firstRow` + `rows` − 1, except in a sample that does not have all rows between. */
  readonly lastRow: number;
  /** Null for a test of all columns. */
  readonly column: number | null;
  readonly statistic: number;
  readonly threshold: number;
}

/** The share of its threshold that a statistic uses. */
function usedBy({ statistic, threshold }: GradientStatistic): number {
  return statistic === 0 ? 0 : Math.abs(statistic) / threshold;
}

/**
 * The statistic of each test and scope that is largest relative to its threshold. A statistic with an infinite
 * threshold is no test.
 * @throws Error for a statistic or a threshold that is NaN: a defect, which must not count as passed
 */
export function worstStatistics(found: Iterable<GradientStatistic>): GradientStatistic[] {
  const worst = new Map<string, GradientStatistic>();
  for (const one of found) {
    const { test, scope, head, statistic, threshold } = one;
    if (Number.isNaN(statistic) || Number.isNaN(threshold))
      throw new Error(
        `the ${test} of head ${head} is ${statistic}, and its threshold ${threshold}`,
      );
    if (threshold === Infinity) continue;
    const key = `${test} ${scope}`;
    const known = worst.get(key);
    if (known === undefined || usedBy(one) > usedBy(known)) worst.set(key, one);
  }
  return [...worst.values()];
}

/** Whether a statistic is beyond its threshold, which roundings explain. */
export function isBeyond({ statistic, threshold }: GradientStatistic): boolean {
  return Math.abs(statistic) > threshold;
}
