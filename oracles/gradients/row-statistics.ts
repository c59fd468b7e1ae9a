import { doubleDouble } from '../../src/arith/index.js';
import { spanOfRows } from '../../src/problem/index.js';
import { tileRows, dotError } from '../attention/operand.js';
import type { Rules } from '../attention/rules.js';
import { withSink } from '../attention/sink.js';
import { trustOf } from '../attention/tile-level.js';
import type { GradientEngine } from './gradient-engine.js';
import { loadBlock, weighTile, type GradientBlock } from './weigh-tile.js';

/** Unit roundoff of fp64. */
const u = 2 ** -53;

/** Factor for neglected products of errors, relative to the errors. */
const slack = 1 + 2 ** -5;

/** The largest relative error of weights within the range of the analysis. */
const largestRelative = 2 ** -10;

/** The largest lift of a sink that leaves the weights of keys above 0 in fp64. */
const largestLift = 1000;

/** An upper bound on the error of dropped weights, and of roundings that underflow. */
const droppedWeight = 2 ** -978;
const underflow = 2 ** -1068;

/**
 * Statistics of the rows of a block from the first pass over the keys: [64] each. The errors are those of Theorem
 * 1 of docs/theory/bounds-backward.md.
 */
export interface RowStatistics {
  /** log2 of the reference of the weights, and their sum with the sink. */
  readonly reference: Float64Array;
  readonly total: Float64Array;
  /** D = Σ P dP with its radius, and Σ P|dP|. */
  readonly mean: Float64Array;
  readonly meanRadius: Float64Array;
  readonly meanSize: Float64Array;
  /** The sink's share of the row sum; 0 without a sink. */
  readonly sinkShare: Float64Array;
  /** Relative error of P, and of P after dropout. */
  readonly weightError: Float64Array;
  /** σ: dT is off by at most σ·P·(|dP| + Σ P|dP|)·slope + δ·P + the floor. */
  readonly relative: Float64Array;
  readonly absolute: Float64Array;
  readonly floor: Float64Array;
  /** Number of tiles that the row sees. */
  readonly tiles: Float64Array;
  /** 1 for a row that sees keys and whose errors are known, else 0. */
  readonly isUsable: Uint8Array;
}

function emptyStatistics(): RowStatistics {
  const column = () => new Float64Array(tileRows);
  return {
    reference: column(),
    total: column().fill(1),
    mean: column(),
    meanRadius: column(),
    meanSize: column(),
    sinkShare: column(),
    weightError: column(),
    relative: column(),
    absolute: column(),
    floor: column(),
    tiles: column(),
    isUsable: new Uint8Array(tileRows),
  };
}

/** Limit at which exponents of slopes are cut off. */
const largestSlopeExponent = 1001;

/** Sums of the first pass, and the largest errors of dot products; infinite where a tile of the block overflows. */
interface RowSums {
  readonly total: Float64Array;
  readonly mean: Float64Array;
  readonly size: Float64Array;
  readonly tiles: Float64Array;
  readonly scoreError: Float64Array;
  readonly productError: Float64Array;
  readonly addendError: Float64Array;
  /** A bound on |dP| before dropout. */
  readonly productExtent: Float64Array;
  /** A bound on the exponents that slopes are computed from. */
  readonly slopeExponent: Float64Array;
}

function sumRows(engine: GradientEngine, block: GradientBlock, rules: Rules): RowSums {
  const { tile, kernels, mean, meanSize } = engine;
  const { firstRow, ranges } = block;
  const { query, keys, values, dout } = block.operands;
  const column = () => new Float64Array(tileRows);
  const sums: RowSums = {
    total: column(),
    mean: column(),
    size: column(),
    tiles: column(),
    scoreError: column(),
    productError: column(),
    addendError: column(),
    productExtent: column(),
    slopeExponent: column(),
  };
  tile.reference.view.fill(-Infinity);
  tile.extent.view.fill(0);
  tile.maximum.view.fill(-Infinity);
  const span = spanOfRows(ranges);
  const first = Math.floor(span.begin / tileRows) * tileRows;
  for (let firstKey = first; firstKey < span.end; firstKey += tileRows) {
    if (weighTile(engine, block, rules, firstKey, sums.addendError) === null) continue;
    kernels.rowProducts(
      tile.scores.address,
      engine.products.address,
      tileRows,
      mean.address,
      meanSize.address,
    );
    const index = firstKey / tileRows;
    for (let i = 0; i < ranges.length; i++) {
      if (ranges[i].length === 0) continue;
      const row = firstRow + i;
      const isSeen = tile.low.view[i] < tile.high.view[i];
      const ofScores = dotError(query, row, keys, index);
      const ofProducts = dotError(dout, row, values, index);
      // What overflows makes NaN of the row's zeros, too.
      if (isSeen || ofScores === Infinity || ofProducts === Infinity) {
        sums.scoreError[i] = Math.max(sums.scoreError[i], ofScores);
        sums.productError[i] = Math.max(sums.productError[i], ofProducts);
      }
      if (!isSeen) continue;
      const extent = dout.norm[row] * values.ofTile(index).norm;
      sums.productExtent[i] = Math.max(sums.productExtent[i], extent);
      const score = query.norm[row] * keys.ofTile(index).norm;
      const exponent = Math.abs(rules.constants.capFactorHigh) * score * (1 + 2 ** -20);
      sums.slopeExponent[i] = Math.max(sums.slopeExponent[i], exponent);
      const factor = tile.factor.view[i];
      sums.total[i] = sums.total[i] * factor + tile.tileTotal.view[i];
      sums.mean[i] = sums.mean[i] * factor + mean.view[i];
      sums.size[i] = sums.size[i] * factor + meanSize.view[i];
      sums.tiles[i]++;
    }
  }
  return sums;
}

/** The share of the row sum that a sink has, relative to 2^reference · 2^lift. */
function sinkShareOf({ sinkOf }: Rules, head: number, exponent: number, sum: number): number {
  const weight = sinkOf(head)?.weight;
  if (weight === null || weight === undefined) return 0;
  return (weight.fraction.high * 2 ** Math.max(-1074, weight.exponent - exponent)) / sum;
}

/** The statistics that normalise a block's rows, with the errors of everything that follows from them. */
export function rowStatistics(
  engine: GradientEngine,
  block: GradientBlock,
  rules: Rules,
): RowStatistics {
  loadBlock(engine, block);
  const sums = sumRows(engine, block, rules);
  const found = emptyStatistics();
  const { head } = block.operands;
  const { law, kept, sinkOf } = rules;
  const share = kept?.share ?? 1;
  const ofDropout = kept === null ? 0 : 3 * u;
  block.ranges.forEach((ofRow, i) => {
    if (ofRow.length === 0) return;
    const trusted = trustOf(rules, head, {
      scoreError: sums.scoreError[i],
      addendError: sums.addendError[i],
      tiles: sums.tiles[i] + 2,
      extent: engine.tile.extent.view[i],
    });
    // Of P and of Σ w dP / Σ w alike.
    const ofWeight = 2 * trusted * (1 + 2 ** -8) + 10 * u;
    const product = (sums.productError[i] / share) * (1 + 2 ** -20);
    const slope =
      law.softcap === null
        ? 0
        : 2 * (Math.abs(law.scale) / law.softcap) * sums.scoreError[i] * slack +
          (24 + 2 * Math.min(largestSlopeExponent, sums.slopeExponent[i])) * u;
    if (!(ofWeight <= largestRelative && product < Infinity && slope <= largestRelative)) return;
    const reference = engine.tile.reference.view[i];
    const { sum, lift } = withSink(doubleDouble(sums.total[i]), reference, sinkOf(head));
    const total = lift > largestLift ? Infinity : sum.high * 2 ** lift;
    const ofDerivative = (2 * ofWeight + 3 * u + ofDropout) * slack;
    const extent = (2 * sums.productExtent[i]) / share;
    const count = (sums.tiles[i] + 1) * tileRows;
    const size = sums.size[i] / total;
    const floor = count * (droppedWeight * extent + underflow);
    found.isUsable[i] = 1;
    found.reference[i] = reference;
    found.total[i] = total;
    found.mean[i] = sums.mean[i] / total;
    found.meanSize[i] = size;
    found.meanRadius[i] = ((ofWeight + ofDropout) * size + product) * slack + floor;
    found.sinkShare[i] = sinkShareOf(rules, head, reference + lift, sum.high);
    found.weightError[i] = (ofWeight + ofDropout) * slack;
    found.relative[i] =
      law.softcap === null ? ofDerivative : (ofDerivative + 2 * slope + 2 * u) * slack;
    found.absolute[i] = 2 * product * slack;
    // Slopes that a softcap has cut off are below 2^-997, and so are their errors.
    found.floor[i] = floor;
    found.tiles[i] = sums.tiles[i];
  });
  return found;
}

/** Leaves a row of a block to another level: it adds nothing to the second pass, and its errors count for nothing. */
export function leaveOut(statistics: RowStatistics, i: number): void {
  const { isUsable, weightError, relative, absolute, floor } = statistics;
  for (const numbers of [isUsable, weightError, relative, absolute, floor]) numbers[i] = 0;
}
