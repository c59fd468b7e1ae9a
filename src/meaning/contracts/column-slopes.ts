import type { DoubleDouble } from '../../arith/index.js';
import type { ExponentRow } from '../../../oracles/index.js';
import { scaledExponent, sharedDivisor, weighRow } from './weigh-row.js';

/** How O of a column moves with the logarithm of the factor, and its magnitude. */
export interface ColumnSlope {
  /** dO / d ln factor, about fp64 accuracy. */
  readonly slope: number;
  /** Σ p|v| / Σ p. */
  readonly magnitude: number;
}

/**
 * The slopes of a row's columns: ln 2 · (Σ p y v / Σ p − O · Σ p y / Σ p), y an exponent above the largest one.
 * @param ratio as `weighRow` takes it
 */
export function columnSlopes(row: ExponentRow, ratio: DoubleDouble | null): readonly ColumnSlope[] {
  const { weights, divisor, largest } = weighRow(row, ratio);
  const sums = Array.from({ length: row.vDim }, () => ({ ofValues: 0, ofSlopes: 0, ofSizes: 0 }));
  if (divisor === null) return sums.map(() => ({ slope: 0, magnitude: 0 }));
  const above = (y: DoubleDouble) => scaledExponent(y, ratio).high - largest.high;
  let slopes = 0;
  weights.forEach(({ high: p }, j) => {
    if (p === 0) return;
    const y = above(row.exponents[j]);
    slopes += p * y;
    row.value(j)?.forEach((v, c) => {
      sums[c].ofValues += p * v;
      sums[c].ofSlopes += p * y * v;
      sums[c].ofSizes += p * Math.abs(v);
    });
  });
  if (row.sink !== null) {
    const y = above(row.sink.exponent);
    slopes += 2 ** y * y;
  }
  const whole = sharedDivisor(row, divisor).high;
  return sums.map(({ ofValues, ofSlopes, ofSizes }) => ({
    slope: (Math.LN2 * (ofSlopes - (ofValues * slopes) / divisor.high)) / whole,
    magnitude: ofSizes / whole,
  }));
}
