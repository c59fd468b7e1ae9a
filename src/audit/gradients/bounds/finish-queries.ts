import type { Gradient } from '../../../../oracles/index.js';
import { countKeys } from '../../../problem/index.js';
import { up, type RowFinish } from './finish-gradient.js';
import { addShare, scaleShares, techniquePlaces } from './gradient-techniques.js';
import type { GradientTechniqueBound } from './group-bounds.js';
import type { PairReader, QueryRows } from './head-tiles.js';
import type { PairArithmetic } from './pair-arithmetic.js';
import type { PairSums } from './pairs/pair-sums.js';
import type { RowErrors } from './pairs/weighed-pairs.js';

/** The context in which rows of dQ are bounded. */
export interface FinishedQueries {
  readonly arithmetic: PairArithmetic;
  readonly reader: PairReader;
  readonly finish: RowFinish;
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
  const alike = reader.alikeKeys(block.kvHead).most;
  rows.forEach((row, i) => {
    const keys = countKeys(block.ranges[i]);
    // Exact zeros.
    if (keys === 0) return;
    const inRow = block.first + i;
    scaleShares(bound.techniques, inRow, scale, up);
    const from = { sums, stored: null, first: i * qkDim };
    finish.row('queries', { bound, row: inRow, exact }, from, {
      ...row,
      scale: arithmetic.scale,
      alike,
      isUnknown: false,
      floor: 3 * keys * arithmetic.underflow * Math.max(1, scale),
    });
  });
}

/** Marks a row of a gradient of which nothing is known. */
export function giveUp(bound: GradientTechniqueBound, dim: number, row: number): void {
  for (const name of ['total', 'systematic', 'deviation'] as const)
    bound[name].fill(Infinity, row * dim, (row + 1) * dim);
  const { outputRound } = techniquePlaces;
  addShare(bound.techniques, row, outputRound, Infinity, Infinity);
}
