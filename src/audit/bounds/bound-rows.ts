import {
  type AttentionReference,
  levels,
  type Progress,
  WorkingMemories,
} from '../../../oracles/index.js';
import {
  countKeys,
  featureNames,
  keptWeights,
  keysOf,
  problemMask,
  rowPlaces,
  spanOf,
  type KeyRange,
  type Mask,
  type Problem,
  type RowPlace,
} from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { createRowNumbers, isClustered } from './alike.js';
import { createCoarseRow } from './coarse/coarse-row.js';
import { createFinishRow } from './finish/finish-row.js';
import { headOperands, queryNorm, type HeadOperands } from './head-operands.js';
import type { KernelArithmetic } from '../../../kernels/index.js';
import { keyTiles } from './key-tiles.js';
import { createScoreTiles } from './score-tiles.js';
import { tileRows, withBoundMemory, type BoundMemory } from './memory.js';
import { appliedRounding } from './weights.js';
import { coarseFactors } from './sums.js';
import { RowErrors } from './technique-bound.js';
import { planRows, type RowPlan } from './row-plan.js';
import { createRowsBounds, type RowsBound } from './rows-bound.js';
import { normaliseBound } from './finish.js';
import { exponentError } from './scores.js';
import { createRowUnits, sunkRow, type SunkRow } from './row-units.js';
import { createWeigher, valueScaleOf } from './weigh-tiles.js';

/** The largest error of a weight of one row, apart from weights that underflow or are flushed to zero. */
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

/**
 * The exponent (log2) at and below which a key's weight, with all its errors, is within the allowance of a
 * weight that underflows, given the row's largest exponent: Theorem 10 of docs/theory/bounds.md.
 */
function negligibleExponent({ maximum, underflow }: KernelArithmetic): (largest: number) => number {
  // The kernel's largest exponent may itself be off, by 1 at most in a row that is not coarse.
  const least = Math.log2(underflow.weights) - 2;
  const isNone = maximum.kind === 'unknown' && maximum.shared === 'none';
  // A maximum that lags; or weights relative to no maximum, which are larger.
  const lag = maximum.kind === 'online' ? Math.abs(maximum.offset) + maximum.threshold : 0;
  return (largest) => Math.min(largest, isNone ? 0 : largest) - lag + least;
}

/** @throws RequestError for a feature of a problem that the arithmetic does not cover */
function refuseUntaken(
  problem: Problem,
  { exponent, dropout, description }: KernelArithmetic,
): void {
  const isTaken = {
    bias: exponent.ofAddend !== undefined,
    alibiSlopes: exponent.ofAddend !== undefined,
    dropout: dropout !== undefined,
  };
  const refused = (['bias', 'alibiSlopes', 'dropout'] as const).filter(
    (name) => problem[name] !== undefined && !isTaken[name],
  );
  if (refused.length > 0)
    throw new RequestError(
      `there are no bounds for ${description} with ${refused.map((name) => featureNames[name]).join(' and ')}; leave ${refused.length === 1 ? 'it' : 'them'} out, or judge by what any kernel may do`,
    );
}

/** Makes a function that computes the bounds of rows, for one problem and kernel. */
function createRowBounder(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  mask: Mask,
  memory: BoundMemory,
) {
  const { shape } = reference;
  const { maximum } = arithmetic;
  const scoreTiles = createScoreTiles(problem, shape, arithmetic, memory);
  const weighTiles = createWeigher(problem, reference, arithmetic, memory, scoreTiles);
  const { out, lse, unit, clustered, fillRow } = createRowsBounds(shape.vDim);
  const finishRow = createFinishRow(reference, arithmetic, memory, out, lse);
  const boundCoarseRow = createCoarseRow(problem, reference, arithmetic, out, lse);
  const rounding = appliedRounding(arithmetic);
  const keptShare = keptWeights(problem, shape)?.share ?? 1;
  const numberRow = createRowNumbers(reference, arithmetic.weightFormat);

  const unitsOf = createRowUnits(problem, reference, maximum);
  const placeOf = rowPlaces(problem, shape);

  /**
   * Whether an online maximum is of no use: a scale that is not positive turns the order of scores, and
   * with an infinite threshold −∞ is kept for good where the first block may show the row no key.
   */
  function hasNoMaximum(ranges: readonly KeyRange[], { firstKey, keys }: RowPlace): boolean {
    if (maximum.kind !== 'online') return false;
    if (problem.scale <= 0) return true;
    if (maximum.threshold !== Infinity) return false;
    const blockOf = (key: number) => Math.floor((key - 1) / maximum.blockKeys);
    return ranges.length === 0 || blockOf(spanOf(ranges).end - firstKey) < blockOf(keys);
  }

  /**
   * Whether all scores of a kernel stay within the range of their formats: as a product, which may hold the addend
   * over the scale, and as an exponent.
   */
  function isInRange(norms: number, addend: number): boolean {
    const scaled = norms * Math.abs(problem.scale) + addend;
    const folded = problem.scale === 0 ? 0 : addend / Math.abs(problem.scale);
    const reach = Math.max(norms + folded, scaled * Math.LOG2E);
    // Products beyond the range of fp64, or such times a scale of 0, are beyond every limit.
    return reach < arithmetic.largestScore && scaled < arithmetic.scoreLimit;
  }

  /** The LSE of a row that sees no key: the sink's score, as a logarithm of one exponential relative to any maximum. */
  function boundSinkAlone(local: number, row: number, { exponent }: SunkRow): void {
    const { finish, exponential } = arithmetic;
    const size = Math.abs(exponent);
    const errors = new RowErrors();
    const terms = { arithmetic, errors, keys: 0, lost: 0, gain: 0, lse: exponent * Math.LN2 };
    const maxima = { largestMaximum: size, finalMaximum: size, logarithm: size };
    const { techniques, ...all } = lse;
    techniques['scale-subtract'][local] = 2 * finish.elementwise * size * Math.LN2;
    techniques['exp2-hardware'][local] = exponential.hardware;
    techniques.normalise[local] = normaliseBound.lse({ ...terms, ...maxima });
    const inner = ['scale-subtract', 'exp2-hardware', 'normalise'] as const;
    const sum = inner.reduce((total, name) => total + techniques[name][local], 0);
    all.total[local] = all.systematic[local] = sum + reference.quantities.lse.radius[row];
  }

  /** The bounds of `count` ≤ 64 rows of one sequence, from query `firstRow` of a head on. */
  return function boundRows(
    operands: HeadOperands,
    firstRow: number,
    count: number,
    isSpecial: (row: number) => boolean,
  ): RowsBound {
    const { head, extents } = operands;
    const first = head * shape.queries + firstRow;
    const place = placeOf(head, firstRow);
    const seen = Array.from({ length: count }, (_, i) => mask.ranges(head, firstRow + i));
    const ranges = seen.map((ofRow, i) => (isSpecial(first + i) ? [] : ofRow));
    const ofRows = (value: (i: number) => number) =>
      Float64Array.from({ length: count }, (_, i) => value(i));
    const units = unitsOf(head, firstRow, count);
    scoreTiles.load(operands, firstRow, units.maximum.map(negligibleExponent(arithmetic)));
    const tiles = keyTiles(arithmetic, ranges, place.firstKey);
    const maxima = scoreTiles.scan(tiles, ranges);
    const known = {
      ...units,
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
    const columns = ranges.map((ofRow) => {
      const ofValues = extents.valueByColumn(ofRow);
      return keptShare === 1 ? ofValues : ofValues.map((x) => x / keptShare);
    });
    const sunk = ranges.map((_, i) => sunkRow(units, i));
    const largestValue = Float64Array.from(columns, (ofRow) =>
      ofRow.reduce((most, x) => Math.max(most, x), 0),
    );
    const valueScale = valueScaleOf(largestValue.reduce((most, x) => Math.max(most, x), 0));
    const weighed = { operands, firstRow, ranges, sunk, plan, errors, largestValue, valueScale };
    weighTiles(weighed, tiles);
    errors.forEach((row, i) => {
      const factors = coarseFactors(arithmetic, countKeys(ranges[i]));
      row.rescales += factors;
      row.rescalesSquared += factors ** 2;
    });
    seen.forEach((ofRow, local) => {
      const row = first + local;
      const norms =
        queryNorm(operands, firstRow + local, shape.qkDim) * extents.keyNorm(ranges[local]);
      if (hasNoMaximum(ofRow, place)) fillRow(local, Infinity);
      else if (isSpecial(row)) fillRow(local, NaN);
      else if (ofRow.length === 0) {
        fillRow(local, 0);
        const ofSink = sunk[local];
        if (ofSink?.isInLse === true) boundSinkAlone(local, row, ofSink);
      } else if (!isInRange(norms, scoreTiles.largestAddend[local])) fillRow(local, Infinity);
      else {
        const columnLargest = columns[local];
        const keys = countKeys(ofRow);
        const ofRowAlone = { local, row, plan, columnLargest, sunk: sunk[local] };
        const ofFine = { ...ofRowAlone, keys, errors: errors[local], valueScale };
        if (known.uncertainty[local] <= 1 && finishRow(ofFine)) return;
        const visible = Int32Array.from(keysOf(ofRow));
        const query = firstRow + local;
        boundCoarseRow({ ...ofRowAlone, query, visible, operands });
      }
    });
    errors.forEach((row, i) => {
      const isAlike = isClustered(row);
      clustered[i] = isAlike ? 1 : 0;
      unit[i] = numberRow(first + i, isAlike);
    });
    return { firstRow: first, rows: count, unit, clustered, quantities: { out, lse } };
  };
}

/** The number of keys of the longest sequence. */
function mostKeys({ sequences }: Problem, keys: number): number {
  return sequences?.reduce((most, one) => Math.max(most, one.keys), 0) ?? keys;
}

/** Number of rows from `first` on that belong to one sequence, at most 64. */
function rowsOfSequence(
  placeOf: (head: number, query: number) => RowPlace,
  head: number,
  first: number,
  queries: number,
): number {
  const most = Math.min(tileRows, queries - first);
  const { sequence } = placeOf(head, first);
  let count = 1;
  while (count < most && placeOf(head, first + count).sequence === sequence) count++;
  return count;
}

/** Options of a visit to all bounds. */
interface RowsBoundOptions {
  readonly progress?: Progress;
  /** The keys that each query sees, in place of the problem's own mask: the reference's mask. */
  readonly mask?: Mask;
  /** Memories that the loops work in; default: memories of this call's own. */
  readonly memories?: WorkingMemories | undefined;
}

/**
 * Visits the bounds of a problem, up to 64 rows of one sequence at a time: for every element of the output and every LSE the
 * largest distance of a kernel of the given arithmetic from the oracle, by technique and in total, and the systematic and
 * the random part of it. Nothing is run: bounds follow from the problem alone. Proofs in docs/theory/bounds.md. Cost is that of
 * about two to three oracles; memory that of a tile, of at most 64 tiles of scores, and of the kept inputs of one head (see
 * `headOperands`).
 *
 * NaN where an input of the row is infinite or NaN (nothing is said), ∞ where the kernel may leave the range of its formats.
 * @throws RequestError for a feature of the problem that the arithmetic does not cover
 */
export function forEachRowsBound(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  visit: (bound: RowsBound) => void,
  {
    progress,
    mask = problemMask(problem, reference.shape),
    memories = new WorkingMemories(),
  }: RowsBoundOptions = {},
): void {
  const { shape } = reference;
  const special = levels.indexOf('special');
  const isSpecial = (row: number) => reference.level[row] === special;
  const { batch, heads, queries } = shape;
  const placeOf = rowPlaces(problem, shape);
  refuseUntaken(problem, arithmetic);
  withBoundMemory(memories, shape, mostKeys(problem, shape.keys), (memory) => {
    const boundRows = createRowBounder(problem, reference, arithmetic, mask, memory);
    for (const operands of headOperands(problem, shape, arithmetic, memories))
      for (let first = 0, count = 0; first < queries; first += count) {
        count = rowsOfSequence(placeOf, operands.head, first, queries);
        visit(boundRows(operands, first, count, isSpecial));
        progress?.((operands.head + (first + count) / queries) / (batch * heads));
      }
  });
}
