import type { StructureResult, StructureScope, StructureTest } from './structure.js';

/** The share of its threshold that a result uses. */
function usedBy({ statistic, threshold }: StructureResult): number {
  return statistic === 0 ? 0 : Math.abs(statistic) / threshold;
}

/** "tile scale of head 1 from query 128 on" */
function describeResult({ test, scope, head, firstRow }: StructureResult): string {
  return `${scope} ${test} of head ${head} from query ${firstRow} on`;
}

/**
 * Keeps, per test and scope, the result that is largest relative to its threshold. One whose threshold is
 * infinite is no test; one that is NaN is a defect, which must not count as passed.
 */
export class WorstResults {
  readonly #worst = new Map<string, StructureResult>();

  /** Whether a result that uses this much of its threshold would be the largest. */
  isBeyond(test: StructureTest, scope: StructureScope, use: number): boolean {
    const worst = this.#worst.get(`${test}, ${scope}`);
    return worst === undefined || !(use <= usedBy(worst));
  }

  /** @throws Error for a statistic or a threshold that is NaN */
  add(result: StructureResult): void {
    const { test, scope, statistic, threshold } = result;
    if (Number.isNaN(threshold) || Number.isNaN(statistic))
      throw new Error(
        `the ${describeResult(result)} is ${statistic}, and its threshold ${threshold}`,
      );
    if (threshold === Infinity) return;
    if (this.isBeyond(test, scope, usedBy(result))) this.#worst.set(`${test}, ${scope}`, result);
  }

  /** One result for each test and scope that has any, in no particular order. */
  list(): StructureResult[] {
    return [...this.#worst.values()];
  }
}
