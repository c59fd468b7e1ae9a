import { type AttentionReference, levels, type Progress } from '../../../oracles/index.js';
import {
  countKeys,
  keysOf,
  problemMask,
  scoreLaw,
  spanOf,
  type KeyRange,
  type Mask,
  type Problem,
} from '../../problem/index.js';
import { createRowNumbers, isClustered } from './alike.js';
import { createCoarseRow } from './coarse-row.js';
import { createFinishRow } from './finish-row.js';
import { headOperands, type HeadOperands } from './head-operands.js';
import type { KernelArithmetic } from '../../../kernels/index.js';
import { createScoreTiles, keyTiles } from './score-tiles.js';
import { createBoundMemory, tileRows } from './memory.js';
import { weightRounding } from './weights.js';
import { coarseFactors } from './sums.js';
import { RowErrors } from './technique-bound.js';
import { planRows, type RowPlan } from './row-plan.js';
import { createRowsBounds, type RowsBound } from './rows-bound.js';
import { exponentError } from './scores.js';
import { createWeigher } from './weigh-tiles.js';

/** The most that a weight of one row can be off, but for weights that underflow or are flushed. */
function largestWeightError(
  { exponent, exponential }: KernelArithmetic,
  plan: RowPlan,
  i: number,
  uncertainty: number,
): number {
  const ofBlocks = plan.blocks.map(({ common, rescales }) =>
    rescales[i] < 1 ? common[i] + rescales[i] : common[i],
  );
  const maximum = plan.largestMaximum[i];
  return (
    Math.expm1(Math.LN2 * uncertainty) +
    exponentError(exponent, { first: 0, second: 128 ** 2, maximum }).rootMeanSquare +
    Math.max(
      exponential.hardware,
      exponential.polynomialColumns.includes(true) ? exponential.polynomial : 0,
    ) +
    Math.max(0, ...ofBlocks)
  );
}

/** Makes a function that computes the bounds of rows, for one problem and kernel. */
function createRowBounder(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  mask: Mask,
) {
  const { shape } = reference;
  const { maximum } = arithmetic;
  if (scoreLaw(problem).addend !== null)
    throw new Error('the bounds cannot yet add to scores, as the score law asks');
  const memory = createBoundMemory(shape.qkDim, shape.vDim, shape.keys);
  const scoreTiles = createScoreTiles(problem, shape, arithmetic, memory);
  const weighTiles = createWeigher(problem, reference, arithmetic, memory, scoreTiles);
  const { out, lse, unit, fillRow } = createRowsBounds(shape.vDim);
  const finishRow = createFinishRow(reference, arithmetic, memory, out, lse);
  const boundCoarseRow = createCoarseRow(problem, reference, arithmetic, out, lse);
  const rounding = weightRounding(arithmetic);
  const numberRow = createRowNumbers(reference, arithmetic.weightFormat);

  /**
   * Whether an online maximum is of no use: a scale that is not positive turns the order of scores, and
   * with an infinite threshold −∞ is kept for good where the first block may show the row no key.
   */
  function hasNoMaximum(ranges: readonly KeyRange[]): boolean {
    if (maximum.kind !== 'online') return false;
    if (problem.scale <= 0) return true;
    if (maximum.threshold !== Infinity) return false;
    const blockOf = (key: number) => Math.floor((key - 1) / maximum.blockKeys);
    return ranges.length === 0 || blockOf(spanOf(ranges).end) < blockOf(shape.keys);
  }

  /** The maximum (log2) that rows of a head have in use together; null where each has its own. */
  function sharedMaximum(head: number): number | null {
    if (maximum.kind !== 'unknown' || maximum.shared === 'row') return null;
    if (maximum.shared === 'none') return 0;
    // Rows of the query heads of one kv head may be packed into one tile.
    const { queries, groupSize } = shape;
    const first = Math.floor(head / groupSize) * groupSize * queries;
    let most = -Infinity;
    for (let row = first; row < first + groupSize * queries; row++)
      if (Number.isFinite(reference.maximum[row])) most = Math.max(most, reference.maximum[row]);
    return most === -Infinity ? null : most / Math.LN2;
  }

  /** The bounds of `count` ≤ 64 rows from query `firstRow` of a head on. */
  return function boundRows(
    operands: HeadOperands,
    firstRow: number,
    count: number,
    isSpecial: (row: number) => boolean,
  ): RowsBound {
    const first = operands.head * shape.queries + firstRow;
    const seen = Array.from({ length: count }, (_, i) => mask.ranges(operands.head, firstRow + i));
    const ranges = seen.map((ofRow, i) => (isSpecial(first + i) ? [] : ofRow));
    const ofRows = (value: (i: number) => number) =>
      Float64Array.from({ length: count }, (_, i) => value(i));
    scoreTiles.load(operands, firstRow, count);
    const tiles = keyTiles(arithmetic, ranges);
    const maxima = scoreTiles.scan(tiles, ranges);
    const known = {
      shared: sharedMaximum(operands.head),
      lse: ofRows((i) => reference.quantities.lse.values[first + i] / Math.LN2),
      maximum: ofRows((i) => reference.maximum[first + i] / Math.LN2),
      uncertainty: ofRows(
        (i) => memory.errors.view[i] + Math.abs(reference.maximum[first + i]) * 2 ** -40,
      ),
    };
    const plan = planRows(arithmetic, rounding, known, maxima);
    const errors = ranges.map((_, i) => {
      const row = new RowErrors();
      row.largest = largestWeightError(arithmetic, plan, i, known.uncertainty[i]);
      return row;
    });
    weighTiles({ operands, firstRow, ranges, plan, errors }, tiles);
    errors.forEach((row, i) => {
      const factors = coarseFactors(arithmetic, countKeys(ranges[i]));
      row.rescales += factors;
      row.rescalesSquared += factors ** 2;
    });
    seen.forEach((ofRow, local) => {
      const row = first + local;
      const norms = operands.query.norms[firstRow + local] * operands.key.largestNorm;
      const scaled = norms * Math.abs(problem.scale);
      const reach = Math.max(norms, scaled * Math.LOG2E);
      if (hasNoMaximum(ofRow)) fillRow(local, Infinity);
      else if (ofRow.length === 0) fillRow(local, 0);
      else if (isSpecial(row)) fillRow(local, NaN);
      // Products beyond the range of fp64, or such times a scale of 0, are beyond every limit.
      else if (!(reach < arithmetic.largestScore && scaled < arithmetic.scoreLimit))
        fillRow(local, Infinity);
      else {
        const keys = countKeys(ofRow);
        const isFine =
          known.uncertainty[local] <= 1 &&
          finishRow({ local, row, keys, errors: errors[local], plan, operands });
        if (isFine) return;
        const visible = Int32Array.from(keysOf(ofRow));
        boundCoarseRow({ local, row, query: firstRow + local, visible, plan, operands });
      }
    });
    errors.forEach((row, i) => {
      unit[i] = numberRow(first + i, isClustered(row));
    });
    return { firstRow: first, rows: count, unit, quantities: { out, lse } };
  };
}

/** How bounds are visited. */
interface RowsBoundOptions {
  readonly progress?: Progress;
  /** Which keys each query sees, in place of the problem's own mask: that of the reference. */
  readonly mask?: Mask;
}

/**
 * Visits the bounds of a problem, 64 rows at a time: for every element of the output and every LSE how
 * far a kernel of the given arithmetic may be from the oracle, by technique and in total, and what of
 * it is systematic and what random. Nothing is run: bounds follow from the problem alone. Proofs in
 * docs/bounds.md. Cost is that of about two to three oracles; memory that of a tile, and of at most 64
 * tiles of scores, beyond the inputs of one head.
 *
 * NaN where an input of the row is infinite or NaN (nothing is said), ∞ where the kernel may leave the
 * range of its formats.
 * @throws Error when the score law has an addend
 */
export function forEachRowsBound(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  visit: (bound: RowsBound) => void,
  { progress, mask = problemMask(problem, reference.shape) }: RowsBoundOptions = {},
): void {
  const { shape } = reference;
  const special = levels.indexOf('special');
  const isSpecial = (row: number) => reference.level[row] === special;
  const boundRows = createRowBounder(problem, reference, arithmetic, mask);
  for (const operands of headOperands(problem, shape, arithmetic)) {
    for (let first = 0; first < shape.queries; first += tileRows) {
      const count = Math.min(tileRows, shape.queries - first);
      visit(boundRows(operands, first, count, isSpecial));
      progress?.((operands.head + (first + count) / shape.queries) / (shape.batch * shape.heads));
    }
  }
}
