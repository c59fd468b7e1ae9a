/** Some rows of one head of a quantity. */
export interface RowsOfHead {
  /** One row, a tile of 128 rows, a head. */
  readonly scope: 'row' | 'tile' | 'head';
  /** Counted over [batch, heads] of the quantity. */
  readonly head: number;
  /** First row and number of rows: of keys for gradients of keys and values, else of queries. */
  readonly firstRow: number;
  readonly rows: number;
  /** The last row: `firstRow` + `rows` − 1, except in a sample that does not have all rows between. */
  readonly lastRow: number;
}

/** A statistic of the errors of some rows against its threshold, which roundings explain. */
export interface ErrorStatistic<Test extends string = string> extends RowsOfHead {
  readonly test: Test;
  /** Null, or left out, for a test of all columns. */
  readonly column?: number | null;
  /** First key and number of keys; null, or left out, for a test that is about all keys. */
  readonly firstKey?: number | null;
  readonly keys?: number | null;
  readonly statistic: number;
  readonly threshold: number;
}

/**
 * A sentence on a failing statistic.
 * @param where the rows
 * @param what the quantity
 * @param sum a clause on a column of it whose sum is off
 */
export type Statement = (
  result: ErrorStatistic,
  where: string,
  what: string,
  sum: string,
) => string;

/** Whether a statistic is beyond its threshold, which roundings explain. */
export function isBeyond({
  statistic,
  threshold,
}: Pick<ErrorStatistic, 'statistic' | 'threshold'>): boolean {
  return Math.abs(statistic) > threshold;
}

/** The share of its threshold that a statistic uses. */
function usedBy({ statistic, threshold }: ErrorStatistic): number {
  return statistic === 0 ? 0 : Math.abs(statistic) / threshold;
}

/**
 * Keeps, per test and scope, the statistic that is largest relative to its threshold. A statistic with an infinite
 * threshold is no test; one that is NaN is a defect, which must not count as passed.
 */
export class WorstStatistics<S extends ErrorStatistic> {
  readonly #worst = new Map<string, S>();

  /** Whether a statistic that uses this much of its threshold would be the largest. */
  isBeyond(test: S['test'], scope: S['scope'], use: number): boolean {
    const worst = this.#worst.get(`${test}, ${scope}`);
    return worst === undefined || !(use <= usedBy(worst));
  }

  /** @throws Error for a statistic or a threshold that is NaN */
  add(found: S): void {
    const { test, scope, head, firstRow, statistic, threshold } = found;
    if (Number.isNaN(threshold) || Number.isNaN(statistic))
      throw new Error(
        `the ${scope} ${test} of head ${head} from row ${firstRow} on is ${statistic}, and its threshold ${threshold}`,
      );
    if (threshold === Infinity) return;
    if (this.isBeyond(test, scope, usedBy(found))) this.#worst.set(`${test}, ${scope}`, found);
  }

  /** One statistic for each test and scope that has any, in the order in which these were first added. */
  list(): S[] {
    return [...this.#worst.values()];
  }
}
