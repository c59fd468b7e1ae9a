import { decode, encode, formats } from '../../../src/formats/index.js';
import { rcpApproxFtz } from '../../../src/hardware/index.js';

const { fp32 } = formats;

/** What the kernel divides by: the row sum, 1 for a row that has none. */
function divisor(sum: number): number {
  return sum === 0 || Number.isNaN(sum) ? 1 : sum;
}

/** Divides the sums of a row by its row sum, in fp64. */
export function exactNormalise(sums: Float64Array, rowSum: number): void {
  const by = divisor(rowSum);
  for (let i = 0; i < sums.length; i++) sums[i] /= by;
}

/**
 * Multiplies the sums of a row by the reciprocal of its row sum as the kernel does: with the relative
 * error of rcp.approx.ftz at the fp32 number nearest to the row sum, and with the error of the fp32
 * product (to nearest even, subnormals kept) at the nearest fp32 operands.
 */
export function emulatedNormalise(sums: Float64Array, rowSum: number): void {
  const by = divisor(rowSum);
  const nearestDivisor = Math.fround(by);
  const reciprocal = decode(fp32, rcpApproxFtz(encode(fp32, nearestDivisor)));
  const factor = by === nearestDivisor ? reciprocal : reciprocal * (nearestDivisor / by);
  const nearestFactor = Math.fround(factor);
  for (let i = 0; i < sums.length; i++) {
    const nearest = Math.fround(sums[i]);
    const product = Math.fround(nearest * nearestFactor);
    sums[i] =
      nearest === sums[i] && nearestFactor === factor
        ? product
        : product + (sums[i] * factor - nearest * nearestFactor);
  }
}
