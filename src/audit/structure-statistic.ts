import type { AttentionReference, WeightTile } from '../../oracles/index.js';
import { formats, smallestNormal, type FormatName } from '../formats/index.js';
import type { KernelBound } from './bound.js';
import { outputRounding } from './bounds/index.js';
import { ErrorPool, NearlyEqual } from './error-pool.js';

/** Query rows per tile in the tile scope. */
export const structureTileRows = 128;

/** Weights in one of 2^7 steps of an octave are taken to round alike; below 2^-40 all of them. */
export const weightGroups = new NearlyEqual(7, -40, 0);

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
  readonly weights = new ErrorPool(weightGroups.size);
  readonly outputs: ErrorPool;
  /** Σ r·X and Σ X². */
  signed = 0;
  norm = 0;
  /** Σ of squared random accumulation errors, Σ of systematic ones. */
  accumulation = 0;
  systematic = 0;

  constructor(outputGroupCount: number) {
    this.outputs = new ErrorPool(outputGroupCount);
  }

  merge(row: Statistic, weightAmplitude: number): void {
    this.weights.merge(row.weights, weightAmplitude);
    this.outputs.merge(row.outputs, 1);
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

/** Adds one tile's weights times projections to the pools of its rows. */
export function collectWeights(
  pools: readonly ErrorPool[],
  tile: WeightTile,
  projection: Float64Array,
  toLargest: Float64Array,
): void {
  const { weights, rows, keys, stride } = tile;
  for (let i = 0; i < rows; i++) {
    const pool = pools[i]!;
    const factor = toLargest[i]!;
    for (let at = i * stride; at < i * stride + keys; at++) {
      const w = weights[at]!;
      if (w !== 0) pool.add(weightGroups.group(w * factor), w * projection[at]!);
    }
  }
}

/** What `collectRow` needs of the output's rows, whatever they are projected on. */
export interface RowErrors {
  readonly reference: AttentionReference;
  readonly out: Float64Array;
  readonly outputFormat: FormatName;
  readonly bound: KernelBound;
  readonly groups: NearlyEqual;
}

/**
 * Fills `statistic` with the error of row `row` projected on `direction` (vDim values), from the
 * row's collected `weights`. False, with nothing filled in, for a row that no statistic admits: NaN,
 * infinities, no keys, a direction that is zero or whose square overflows.
 */
export function collectRow(
  statistic: Statistic,
  { reference, out, outputFormat, bound, groups }: RowErrors,
  row: number,
  direction: Float64Array,
  weights: ErrorPool,
): boolean {
  const { vDim } = reference.shape;
  const smallest = smallestNormal(formats[outputFormat]);
  const { typicalWeight, addition, normalisation, floor, keys, weightRounding } = bound.row(row);
  statistic.clear();
  let signed = 0;
  let norm = 0;
  let magnitude = 0;
  let own = 0;
  for (let c = 0; c < vDim; c++) {
    const at = row * vDim + c;
    const x = direction[c]!;
    const exact = reference.out[at]!;
    signed += (out[at]! - exact) * x;
    norm += x * x;
    magnitude += reference.magnitude[at]! * Math.abs(x);
    own += Math.abs(exact * x);
    const half = outputRounding(outputFormat, exact, 0);
    // Subnormal outputs are as far apart as the smallest normal ones.
    const size = Math.abs(exact) < smallest ? Math.abs(exact) + smallest : Math.abs(exact);
    statistic.outputs.add(groups.group(size), half * x * Math.sign(exact));
  }
  if (!(Number.isFinite(signed) && norm > 0 && norm < Infinity && keys > 0)) {
    statistic.clear();
    return false;
  }
  statistic.signed = signed;
  statistic.norm = norm;
  statistic.accumulation = keys * (addition * magnitude) ** 2;
  statistic.systematic = (typicalWeight + normalisation) * own + floor * Math.sqrt(norm * vDim);
  statistic.weights.merge(weights, weightRounding + typicalWeight);
  return true;
}
