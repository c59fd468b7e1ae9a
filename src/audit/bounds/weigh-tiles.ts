import type { AttentionReference } from '../../../oracles/index.js';
import { smallestNormalOf } from '../../formats/index.js';
import { keptWeights, type KeyRange, type Problem } from '../../problem/index.js';
import { alikeBinsPerOctave } from './alike.js';
import type { HeadOperands } from './head-operands.js';
import { type KernelArithmetic, roundoff32 } from '../../../kernels/index.js';
import type { KeyTile } from './key-tiles.js';
import type { ScoreTiles } from './score-tiles.js';
import { paddedRows, sumsPerRow, tileRows, type BoundMemory } from './memory.js';
import { appliedRounding } from './weights.js';
import type { SunkRow } from './row-units.js';
import { rowSumLoss, tileLoss } from './sums.js';
import type { RowErrors } from './technique-bound.js';
import type { BlockPlan, RowPlan } from './row-plan.js';

/** Squares of larger values, and sums of them, may leave the range of fp64. */
const hugeValue = 2 ** 400;

/** A power of two that keeps the squares of values of at most this magnitude within fp64; 1 unless they are huge. */
export function valueScaleOf(largest: number): number {
  return largest > hugeValue ? 1 / hugeValue ** 2 : 1;
}

/**
 * The least magnitude of a tile's values, in units of the largest, from which on its sums are taken in fp32: a term that is lost because
 * it is below the range of fp32 is below 2^-80 of each sum then.
 */
const leastNarrow = 2 ** -30;

/** What those sums are off by, in units of the sums of their terms' magnitudes: some 66 roundings of 2^-24. */
const narrowLoss = 2 ** -17;

/** The rows that are weighed. */
interface WeighedRows {
  readonly operands: HeadOperands;
  readonly firstRow: number;
  readonly ranges: readonly (readonly KeyRange[])[];
  readonly plan: RowPlan;
  /** The sink of each row; null without one. */
  readonly sunk: readonly (SunkRow | null)[];
  /** The largest magnitude among the values that each row sees, times dropout's factor. */
  readonly largestValue: Float64Array;
  /** See `valueScaleOf`. */
  readonly valueScale: number;
  /** The rows' errors to fill. */
  readonly errors: readonly RowErrors[];
}

/** Blocks of the memory that, after all tiles, hold the sums that the bounds of the elements are made from. */
const runningSums = [
  ...(['sum', 'squares', 'moved', 'predicted', 'spread', 'accumulated', 'rescaled'] as const),
] as const;

/**
 * Makes a function that takes rows through their tiles of keys: weights, the effects of errors on them, and
 * their products with V, into the memory's running sums and the rows' errors.
 */
export function createWeigher(
  problem: Problem,
  {
    shape,
    quantities: {
      out: { magnitude },
    },
  }: AttentionReference,
  arithmetic: KernelArithmetic,
  memory: BoundMemory,
  scoreTiles: ScoreTiles,
) {
  const { queries, vDim } = shape;
  const { exponential, maximum, underflow } = arithmetic;
  const { kernels, vStride } = memory;
  const rounding = appliedRounding(arithmetic);
  const kept = keptWeights(problem, shape);
  const keptOfRow = new Uint8Array(tileRows);
  const binsPerOctave = alikeBinsPerOctave(arithmetic.weightFormat);
  const offset = maximum.kind === 'online' ? maximum.offset : 0;
  const loss = tileLoss(arithmetic, tileRows, smallestNormalOf(problem.v));
  // Weights relative to one number that may be any, sums in any order: nothing depends on the tiles' order.
  const isAnyOrder =
    maximum.kind === 'unknown' && arithmetic.values.kind === 'any-order' && kept === null;

  /** Σ w|v| of the rows, relative to the same sum as the weights. */
  function loadMagnitudes(rows: WeighedRows): void {
    const { operands, firstRow, valueScale, largestValue } = rows;
    const first = operands.head * queries + firstRow;
    memory.magnitude.view.fill(0);
    for (let i = 0; i < rows.ranges.length; i++) {
      const share = rows.sunk[i]?.share ?? 1;
      const ofRow = memory.magnitude.view.subarray(i * vStride, i * vStride + vDim);
      ofRow.set(magnitude.subarray((first + i) * vDim, (first + i + 1) * vDim));
      // Beside a sink that has all the weight nothing remains to divide: then the upper bound.
      if (share !== 1)
        for (let c = 0; c < vDim; c++)
          ofRow[c] = Math.min(ofRow[c] / share, largestValue[i]) || largestValue[i];
      if (valueScale !== 1) for (let c = 0; c < vDim; c++) ofRow[c] *= valueScale;
    }
  }

  /** The largest magnitude of values whose sums may be taken in fp32; else null. */
  function loadKeys({ operands, valueScale }: WeighedRows, tile: KeyTile): number | null {
    // Products with dropout's factor.
    const factor = valueScale / (kept?.share ?? 1);
    memory.isPolynomial.view.set(tile.isPolynomial.map(Number));
    tile.isPolynomial.forEach((isOne, key) => {
      memory.exponential.view[key] = isOne ? exponential.polynomial : exponential.hardware;
    });
    memory.values.view.fill(0, tile.keys * vStride);
    let [least, largest] = [Infinity, 0];
    for (let key = 0, count = 0; key < tile.keys; key += count) {
      const row = tile.firstKey + key;
      const { first, values, ...extremes } = operands.value.with(row);
      count = Math.min(tile.keys - key, first + tileRows - row);
      least = Math.min(least, extremes.least);
      largest = Math.max(largest, extremes.largest);
      const from = values.subarray((row - first) * vDim, (row - first + count) * vDim);
      if (vDim === vStride) memory.values.view.set(from, key * vStride);
      else
        for (let i = 0; i < count; i++)
          memory.values.view.set(from.subarray(i * vDim, (i + 1) * vDim), (key + i) * vStride);
    }
    if (factor !== 1)
      for (let i = 0; i < memory.values.view.length; i++) memory.values.view[i] *= factor;
    return least >= leastNarrow * largest ? largest * factor : null;
  }

  /** Clears the weights that dropout leaves out: they do not reach V. The row sum has had them. */
  function drop({ operands, firstRow, ranges }: WeighedRows, tile: KeyTile): void {
    if (kept === null) return;
    const views = [memory.scores, memory.rounding, memory.known, memory.variance];
    for (let i = 0; i < ranges.length; i++) {
      kept.fill(operands.head, firstRow + i, tile.firstKey, keptOfRow);
      for (let key = 0; key < tileRows; key++)
        if (keptOfRow[key] === 0) for (const { view } of views) view[i * tileRows + key] = 0;
    }
  }

  /** Adds the variances of the roundings of a tile's own sums P·V. */
  function spreadTileSums(rows: number, tile: KeyTile): void {
    const { valueTiles } = arithmetic;
    if (valueTiles === undefined) return;
    const { roundoff, productsPerSum, keys } = valueTiles;
    const variance = ((roundoff * (1 + 2 ** -6)) ** 2 / 3) * (keys / tileRows);
    const partial = new Float64Array(vDim);
    for (let i = 0; i < rows; i++) {
      partial.fill(0);
      const weights = memory.scores.view.subarray(i * tileRows, i * tileRows + tile.keys);
      for (let begin = 0; begin < tile.keys; begin += productsPerSum) {
        const end = Math.min(begin + productsPerSum, tile.keys);
        for (let j = begin; j < end; j++) {
          const w = weights[j];
          if (w === 0) continue;
          for (let c = 0; c < vDim; c++) partial[c] += w * memory.values.view[j * vStride + c];
        }
        for (let c = 0; c < vDim; c++)
          memory.spread.view[i * vStride + c] += variance * partial[c] ** 2;
      }
    }
  }

  function weigh(rows: WeighedRows, tile: KeyTile, block: BlockPlan, padded: number): void {
    for (const name of ['shift', 'gain', 'uncertainty', 'relative', 'least'] as const)
      memory[name].view.set(block[name]);
    const { smallestNormal, ulpOfOne, maxFinite, saturates } = rounding;
    const rules = memory.rules.write({
      factor: scoreTiles.factor,
      offset,
      smallestNormal,
      ulpOfOne,
      maxFinite,
      saturates,
      binsPerOctave,
    });
    kernels.weigh(memory.tile, padded, rules);
    drop(rows, tile);
  }

  /** Adds the tile's sums to a row's errors, and returns the tile's effects on its sums over keys. */
  function addToRow(
    row: RowErrors,
    i: number,
    tile: KeyTile,
    block: BlockPlan,
    largestValue: number,
  ): void {
    const sum = (index: number) => memory.sums.view[i * sumsPerRow + index];
    const mass = sum(0);
    const isMultiplied = tile.startsBlock && block.multiplied[i] === 1;
    // A loss before the division by the row sum grows with it where the row sum is below 1.
    const gain = Math.max(block.gain[i], 1);
    if (isMultiplied) {
      row.rescaledSum += roundoff32 * row.massAtMost;
      row.rescaleUnderflow += underflow.sums * gain;
    }
    row.addTile(mass, block.common[i], block.commonOfLse[i], block.rescales[i]);
    row.polynomialMass += sum(1);
    row.distance += sum(2);
    row.distanceSquared += sum(3);
    row.exponentialVariance += sum(4);
    row.subnormalBias += sum(5);
    row.scores += sum(6);
    row.scoresSquared += sum(7);
    row.squares += sum(8);
    row.squaresAlike += sum(9);
    if (row.blockMass > 0)
      row.rowSum += rowSumLoss(arithmetic, tile.keys, tile.endsBlock) * row.massAtMost;
    if (tile.endsBlock) row.blockMass = 0;
    memory.mass.view[i] = mass;
    memory.slack.view[i] = row.largest + 2 * rounding.relative + narrowLoss;
    memory.perTile.view[i] = mass > 0 ? loss.relative : 0;
    const floor =
      loss.perMass * mass + loss.perValue * block.gain[i] * largestValue + loss.fixed * gain;
    memory.floor.view[i] = mass > 0 ? floor : 0;
    memory.rescale.view[i] = isMultiplied ? roundoff32 : 0;
  }

  /** Adds what the roundings of a row's weights move relative to their size, which is the same for all. */
  function addMoved(i: number): void {
    const relative = memory.relative.view[i];
    const [first, end] = [i * vStride, (i + 1) * vStride];
    for (let at = first; at < end; at++)
      memory.moved.view[at] += relative * memory.magnitude.view[at];
  }

  return function weighTiles(rows: WeighedRows, tiles: readonly KeyTile[]): void {
    const { ranges, plan, errors } = rows;
    const padded = paddedRows(ranges.length);
    loadMagnitudes(rows);
    // A subnormal value counts with the exponent of the smallest normal number.
    const leastValue = smallestNormalOf(problem.v);
    const largestValue = rows.largestValue.map((most) => Math.max(most, leastValue));
    for (const name of runningSums) memory[name].view.fill(0);
    // Where values are scaled the oracle's sums of their magnitudes may have lost some of them.
    const isUnknown = isAnyOrder && rows.valueScale === 1 && rows.sunk.every((one) => one === null);
    for (const tile of tiles) {
      const block = plan.blocks[tile.block];
      scoreTiles.score(tile, ranges);
      const narrow = loadKeys(rows, tile);
      weigh(rows, tile, block, padded);
      spreadTileSums(ranges.length, tile);
      if (isUnknown) kernels.addUnknown(memory.tile, padded);
      else if (narrow !== null) kernels.narrowMoments(memory.tile, padded, narrow);
      else kernels.moments(memory.tile, padded);
      errors.forEach((row, i) => addToRow(row, i, tile, block, largestValue[i]));
      if (!isUnknown) kernels.addTile(memory.tile, padded);
    }
    if (isUnknown) ranges.forEach((_, i) => addMoved(i));
  };
}
