import type { ProblemShape } from '../../problem/index.js';
import type { Premises } from '../premises/premises.js';
import { formatNumber } from '../../words/index.js';
import { WorstStatistics, type ErrorStatistic, type Statement } from './error-statistic.js';

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

/** What the report says of a statistic, and when it is made. */
interface StatisticFacts {
  /** The name of the quantity whose errors it is made of. */
  readonly quantity: 'out' | 'lse';
  /** Whether what a kernel declares may itself have this effect, so that it is not tested then. */
  readonly needsUsualPremises: boolean;
  readonly statement: Statement;
}

function percent(value: number): string {
  return `${formatNumber(Math.abs(value) * 100)} %`;
}

const tooHigh: Statement = ({ statistic, threshold }, where, what) =>
  `${what} is ${formatNumber(Math.abs(statistic))} too ${statistic > 0 ? 'high' : 'low'} on average on ${where}; rounding explains ± ${formatNumber(threshold)}`;

/** The statistics, in the order of their findings. */
const statistics: Readonly<Record<StructureTest, StatisticFacts>> = {
  scale: {
    quantity: 'out',
    needsUsualPremises: false,
    statement: ({ statistic, threshold }, where, what) => {
      if (Math.abs(1 + statistic) <= 1e-9) return `${what} is zero on ${where}`;
      const slope = `(slope on the oracle ${(1 + statistic).toFixed(4)}; rounding explains 1 ± ${formatNumber(threshold)})`;
      return statistic < -1
        ? `${what} runs against what it should be on ${where} ${slope}`
        : `${what} is ${percent(statistic)} ${statistic > 0 ? 'large' : 'small'} on ${where} ${slope}`;
    },
  },
  bias: { quantity: 'out', needsUsualPremises: false, statement: tooHigh },
  truncation: {
    quantity: 'out',
    needsUsualPremises: true,
    statement: ({ statistic, threshold }, where, what) =>
      `${what} is rounded ${statistic < 0 ? 'towards' : 'away from'} zero on ${where}: it is ${formatNumber(Math.abs(statistic))} half ulps too ${statistic < 0 ? 'small' : 'large'} on average; rounding to nearest explains ± ${formatNumber(threshold)}`,
  },
  dispersion: {
    quantity: 'out',
    needsUsualPremises: true,
    statement: ({ statistic, threshold }, where) =>
      `the rows of ${where} are off by factors of their own, ${percent(statistic)} in the root mean square; rounding explains ${percent(threshold)}`,
  },
  'lse-mean': { quantity: 'lse', needsUsualPremises: true, statement: tooHigh },
  'key-tile': {
    quantity: 'out',
    needsUsualPremises: false,
    statement: ({ statistic, threshold, firstKey, keys }, where) =>
      `on ${where} the error is ${formatNumber(Math.abs(statistic))} times what ${statistic > 0 ? 'leaving out' : 'counting twice'} keys ${firstKey} to ${firstKey! + keys! - 1} does to first order; rounding explains ± ${formatNumber(threshold)}`,
  },
};

/** Sentences on the statistics that fail, in the order of their findings. */
export const structureStatements = Object.fromEntries(
  Object.entries(statistics).map(([test, { statement }]) => [test, statement]),
) as Readonly<Record<StructureTest, Statement>>;

/** The name of the quantity whose errors a test is made of. */
export function structureQuantity(test: StructureTest): string {
  return statistics[test].quantity;
}

/** Keys of a tile that the key-tile test takes as one. */
export const keyTileKeys = 128;

/** Rows that a statistic is pooled over: one query, a tile of 128 queries, a head. */
export const structureScopes = ['row', 'tile', 'head'] as const;
/** One of {@link structureScopes}. */
export type StructureScope = (typeof structureScopes)[number];

/** One statistic against its threshold. */
export interface StructureResult extends ErrorStatistic<StructureTest> {
  readonly firstKey: number | null;
  readonly keys: number | null;
}

/** Results in the order of {@link structureTests}. */
export function inTestOrder<T extends { readonly test: StructureTest }>(
  results: readonly T[],
): T[] {
  return structureTests.flatMap((test) => results.filter((result) => result.test === test));
}

/** Keeps the worst results, of which those without a last row are about all rows from the first on. */
export class WorstResults extends WorstStatistics<StructureResult> {
  override add(found: Omit<StructureResult, 'lastRow'>): void {
    super.add({ lastRow: found.firstRow + found.rows - 1, ...found });
  }
}

/** A structure test without any result, and the reason: a clause that follows "since". */
export interface UntestedStructure {
  readonly test: StructureTest;
  readonly reason: string;
}

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
    return 'queries list keys of their own, or too few are sampled, for so many tiles of keys';
  if (test === 'lse-mean' && !hasLse) return 'no LSE was given';
  if (statistics[test].needsUsualPremises && !isUsual) return 'the kernel declares how it computes';
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
