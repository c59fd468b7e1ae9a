import type { ProblemShape } from '../../problem/index.js';
import type { Premises } from '../premises/premises.js';

/**
 * Statistics that rounding leaves near zero and a bug does not: `scale` is the regression slope of the output
 * on the oracle, less one (relative); `bias` the mean signed error over the columns (absolute), elements
 * weighing by the inverse of their noise; `truncation` the error in half ulps of the output, away from zero
 * (−1 for an output that is truncated); `dispersion` the root mean square of the rows' slopes; `lse-mean` the
 * mean error of the LSE; `key-tile` the part of a tile of keys' contribution that is missing (Σ r·D / Σ D², D
 * the change of O when the tile is left out, to first order in its weight).
 */
export const structureTests = [
  'scale',
  'bias',
  'truncation',
  'dispersion',
  'lse-mean',
  'key-tile',
] as const;
/** One of {@link structureTests}. */
export type StructureTest = (typeof structureTests)[number];

/** The name of the quantity whose errors a test is made of. */
export function structureQuantity(test: StructureTest): string {
  return test === 'lse-mean' ? 'lse' : 'out';
}

/** Keys of a tile that the key-tile test takes as one. */
export const keyTileKeys = 128;

/** Rows that a statistic is pooled over: one query, a tile of 128 queries, a head. */
export const structureScopes = ['row', 'tile', 'head'] as const;
/** One of {@link structureScopes}. */
export type StructureScope = (typeof structureScopes)[number];

/** One statistic against its threshold. */
export interface StructureResult {
  readonly test: StructureTest;
  readonly scope: StructureScope;
  /** Flat index over [batch, heads]. */
  readonly head: number;
  /** First query row and number of rows pooled. */
  readonly firstRow: number;
  readonly rows: number;
  /** The last row: `firstRow` + `rows` − 1, except in a sample that does not have all rows between. */
  readonly lastRow: number;
  /** First key and number of keys of a key tile; null for the tests that are about all keys. */
  readonly firstKey: number | null;
  readonly keys: number | null;
  readonly statistic: number;
  readonly threshold: number;
}

/** Results in the order of {@link structureTests}. */
export function inTestOrder<T extends { readonly test: StructureTest }>(
  results: readonly T[],
): T[] {
  return structureTests.flatMap((test) => results.filter((result) => result.test === test));
}

/** The share of its threshold that a result uses. */
function usedBy({ statistic, threshold }: StructureResult): number {
  return statistic === 0 ? 0 : Math.abs(statistic) / threshold;
}

/** "tile scale of head 1 from query 128 on" */
function describeResult({ test, scope, head, firstRow }: StructureResult): string {
  return `${scope} ${test} of head ${head} from query ${firstRow} on`;
}

/** A result whose rows are all those from the first on. */
type Unplaced = Omit<StructureResult, 'lastRow'>;

/**
 * Keeps, per test and scope, the result that is largest relative to its threshold. A result with an infinite
 * threshold is no test; one that is NaN is a defect, which must not count as passed.
 */
export class WorstResults {
  readonly #worst = new Map<string, StructureResult>();

  /** Whether a result that uses this much of its threshold would be the largest. */
  isBeyond(test: StructureTest, scope: StructureScope, use: number): boolean {
    const worst = this.#worst.get(`${test}, ${scope}`);
    return worst === undefined || !(use <= usedBy(worst));
  }

  /** @throws Error for a statistic or a threshold that is NaN */
  add(found: Unplaced): void {
    const result = { lastRow: found.firstRow + found.rows - 1, ...found };
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

/** A structure test without any result, and the reason: a clause that follows "since". */
export interface UntestedStructure {
  readonly test: StructureTest;
  readonly reason: string;
}

/** Tests of effects that a declaration itself may have. */
const needsUsualPremises: ReadonlySet<StructureTest> = new Set([
  'truncation',
  'dispersion',
  'lse-mean',
]);

/** Facts that decide, beside sizes and premises, which tests are made. */
interface StructureSituation {
  readonly hasLse: boolean;
  /** Whether key tiles are left out: see `isKeyTileTestLeftOut`. */
  readonly isThin: boolean;
}

function reasonOf(
  test: StructureTest,
  { keys }: ProblemShape,
  { isUsual, maximum }: Premises,
  { hasLse, isThin }: StructureSituation,
): string {
  if (test === 'key-tile' && keys <= keyTileKeys) return 'there is one tile of keys only';
  if (test === 'key-tile' && maximum === 'group')
    return 'its blocks of rows share their maximum with others';
  if (test === 'key-tile' && isThin)
    return 'a sample of rows has too few of each head for so many tiles of keys';
  if (test === 'lse-mean' && !hasLse) return 'no LSE was given';
  if (needsUsualPremises.has(test) && !isUsual) return 'the kernel declares how it computes';
  return 'no row is finite, not zero, and errs by little enough for statistics';
}

/** The structure tests without a result. */
export function untestedStructure(
  results: readonly StructureResult[],
  shape: ProblemShape,
  premises: Premises,
  situation: StructureSituation,
): UntestedStructure[] {
  return structureTests
    .filter((test) => !results.some((result) => result.test === test))
    .map((test) => ({ test, reason: reasonOf(test, shape, premises, situation) }));
}
