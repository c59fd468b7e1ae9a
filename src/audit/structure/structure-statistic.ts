import { levels, type AttentionReference, type WeightTile } from '../../../oracles/index.js';
import { formats, smallestNormal, type FormatName } from '../../formats/index.js';
import { type KernelBound, outputRounding } from '../bounds/index.js';
import { ErrorPool, NearlyEqual } from './error-pool.js';

/** Query rows per tile in the tile scope. */
export const structureTileRows = 128;

/** Query rows that a walk over the weights is at work on at once. */
export const walkRows = 64;

/** The most steps of an octave that weights are told apart by, in bits. */
const finestWeights = 7;

/**
 * Weights within an ulp of the format that P is rounded to, or within 2^-7, are taken to round alike;
 * below 2^-40 all of them.
 */
export function weightGroups(format: FormatName): NearlyEqual {
  return new NearlyEqual(Math.min(formats[format].precision - 1, finestWeights), -40, 0);
}

/** Outputs that agree to an eighth of an ulp are taken to round alike. */
export function outputGroups(format: FormatName): NearlyEqual {
  return new NearlyEqual(Math.min(formats[format].precision + 2, 13), -40, 20);
}

/**
 * z such that a sub-Gaussian statistic exceeds z standard deviations with probability at most
 * `falseAlarmRate` in any of `count` tests (2·exp(−z²/2) each).
 */
export function alarmDeviations(count: number, falseAlarmRate: number): number {
  return Math.sqrt(2 * Math.log((2 * Math.max(count, 1)) / falseAlarmRate));
}

/** What one statistic has collected over the rows of its scope. */
export class Statistic {
  readonly weights = new ErrorPool();
  readonly outputs = new ErrorPool();
  /** Σ r·X and Σ X². */
  signed = 0;
  norm = 0;
  /** Σ of squared random accumulation errors, Σ of systematic ones. */
  accumulation = 0;
  systematic = 0;

  merge(row: Statistic): void {
    this.weights.merge(row.weights.view(), [1]);
    this.outputs.merge(row.outputs.view(), [1]);
    this.signed += row.signed;
    this.norm += row.norm;
    this.accumulation += row.accumulation;
    this.systematic += row.systematic;
  }

  clear(): void {
    this.weights.clear();
    this.outputs.clear();
    this.signed = 0;
    this.norm = 0;
    this.accumulation = 0;
    this.systematic = 0;
  }

  tolerance(deviations: number): number {
    return (
      this.weights.tolerance(deviations) +
      this.outputs.tolerance(deviations) +
      deviations * Math.sqrt(this.accumulation) +
      this.systematic
    );
  }
}

/**
 * Adds one tile's weights, times their projections on each direction, to that direction's statistic.
 * @param toLargest per row what a weight is to be multiplied by to be relative to the largest
 * @param amplitude per row the largest relative error of a weight
 */
export function collectWeights(
  statistics: readonly Statistic[],
  weightGroups: NearlyEqual,
  { weights, applied, rows, keys, stride, projections }: WeightTile,
  toLargest: Float64Array,
  amplitude: Float64Array,
): void {
  const pools = statistics.slice(0, projections.length).map((statistic) => statistic.weights);
  for (let i = 0; i < rows; i++)
    for (let at = i * stride; at < i * stride + keys; at++) {
      const w = weights[at];
      if (w === 0) continue;
      const group = weightGroups.group(w * toLargest[i]);
      const error = amplitude[i] * applied[at];
      for (let d = 0; d < pools.length; d++) pools[d].add(group, error * projections[d][at]);
    }
}

/** What `collectRow` needs of the output's rows, whatever they are projected on. */
export interface RowErrors {
  readonly reference: AttentionReference;
  readonly out: Float64Array;
  readonly outputFormat: FormatName;
  readonly bound: KernelBound;
  /** Of weights that round alike. */
  readonly weightGroups: NearlyEqual;
  /** Of outputs that round alike. */
  readonly groups: NearlyEqual;
}

/**
 * Adds the error of row `row` projected on `direction` (vDim values) to `statistic`, but for its weights. Adds nothing of a
 * row that no statistic admits: NaN, infinities (also among its inputs, for then no weights are collected), no keys, a
 * direction that is zero or whose square overflows.
 */
export function collectRow(
  statistic: Statistic,
  { reference, out, outputFormat, bound, groups }: RowErrors,
  row: number,
  direction: Float64Array,
): void {
  if (levels[reference.level[row]] === 'special') return;
  const { values, magnitude: magnitudes } = reference.quantities.out;
  const { vDim } = reference.shape;
  const smallest = smallestNormal(formats[outputFormat]);
  const { typicalWeight, addition, normalisation, floor, keys, isCoarse, declared } =
    bound.row(row);
  if (isCoarse) return;
  const first = row * vDim;
  let signed = 0;
  let norm = 0;
  let magnitude = 0;
  let own = 0;
  for (let c = 0; c < vDim; c++) {
    const x = direction[c];
    const exact = values[first + c];
    signed += (out[first + c] - exact) * x;
    norm += x * x;
    magnitude += magnitudes[first + c] * Math.abs(x);
    own += Math.abs(exact * x);
  }
  if (!(Number.isFinite(signed) && norm > 0 && norm < Infinity && keys > 0)) return;
  let halves = 0;
  for (let c = 0; c < vDim; c++) {
    const exact = values[first + c];
    const ofHalf = outputRounding(outputFormat, exact, 0) * direction[c];
    // Subnormal outputs are as far apart as the smallest normal ones.
    const size = Math.abs(exact) < smallest ? Math.abs(exact) + smallest : Math.abs(exact);
    statistic.outputs.add(groups.group(size), ofHalf * Math.sign(exact));
    halves += Math.abs(ofHalf);
  }
  statistic.signed += signed;
  statistic.norm += norm;
  statistic.accumulation += keys * (addition * magnitude) ** 2;
  statistic.systematic +=
    (typicalWeight + normalisation) * own +
    floor * Math.sqrt(norm * vDim) +
    (2 * declared.ofWeights + declared.ofMagnitude) * magnitude +
    declared.halves * halves;
}
