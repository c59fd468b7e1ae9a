import type { Gradient } from '../../../../oracles/index.js';
import { countKeys } from '../../../problem/index.js';
import { noErrors, up, type createFinish } from './finish-gradient.js';
import { addShare, scaleShares, techniquePlaces } from './gradient-techniques.js';
import type { GradientTechniqueBound } from './group-bounds.js';
import type { PairReader, QueryRows } from './head-tiles.js';
import type { PairArithmetic } from './pair-arithmetic.js';
import { byOthersOf, commonOf, partialsOf, type PairSums } from './pairs/pair-sums.js';
import type { RowErrors } from './pairs/weighed-pairs.js';

/** The context in which rows of dQ are bounded. */
export interface FinishedQueries {
  readonly arithmetic: PairArithmetic;
  readonly reader: PairReader;
  readonly finish: ReturnType<typeof createFinish>;
}

/** Bounds the rows of dQ of a block, whose sums are those of its first row on. */
export function finishQueries(
  { arithmetic, finish, reader }: FinishedQueries,
  block: QueryRows,
  rows: readonly RowErrors[],
  sums: PairSums,
  { exact, bound }: { readonly exact: Gradient; readonly bound: GradientTechniqueBound },
): void {
  const { qkDim } = reader.shape;
  const scale = Math.abs(arithmetic.scale);
  const errors = noErrors({
    knownOf: techniquePlaces.dsRound,
    alike: reader.alikeKeys(block.kvHead).most,
  });
  rows.forEach((row, i) => {
    const keys = countKeys(block.ranges[i]);
    // Exact zeros.
    if (keys === 0) return;
    const inRow = block.first + i;
    errors.floor = 3 * keys * arithmetic.underflow * Math.max(1, scale);
    scaleShares(bound.techniques, inRow, scale, up);
    for (let c = 0; c < qkDim; c++) {
      const from = i * qkDim + c;
      const at = inRow * qkDim + c;
      const value = exact.values[at];
      const shift = row.weightShift * value - arithmetic.scale * row.meanShift * sums.signed[from];
      const size = Math.abs(value + shift);
      // The keys cancel in the effect of an error of D, and of one of the LSE.
      const ofMean = scale * Math.abs(sums.signed[from]);
      errors.shift = shift;
      errors.pairs = scale * sums.worst[from];
      errors.pairVariance = scale ** 2 * sums.variance[from];
      errors.known = arithmetic.scale * sums.known[from];
      byOthersOf(sums, from, arithmetic.scale, errors.byOthers);
      errors.magnitude = scale * sums.magnitude[from];
      errors.partials = scale ** 2 * partialsOf(sums, from);
      errors.lseInput = row.weight * size;
      errors.lseVariance = row.weightVariance * size ** 2;
      errors.delta = row.worstMean * (1 + row.weight) * ofMean;
      errors.deltaVariance = row.meanVariance * ofMean ** 2;
      errors.systematic =
        scale * (sums.systematic[from] + commonOf(sums, from)) +
        row.typicalMean * ofMean +
        row.typicalWeight * size;
      finish(bound, inRow, at, exact, errors);
    }
  });
}

/** Marks a row of a gradient of which nothing is known. */
export function giveUp(bound: GradientTechniqueBound, dim: number, row: number): void {
  for (const name of ['total', 'systematic', 'deviation'] as const)
    bound[name].fill(Infinity, row * dim, (row + 1) * dim);
  const { outputRound } = techniquePlaces;
  addShare(bound.techniques, row, outputRound, Infinity, Infinity);
}
