import { fusedMultiplyAddFloat32 } from '../../../src/arith/index.js';
import { decode, encode, formats } from '../../../src/formats/index.js';
import { lg2ApproxFtz } from '../../../src/hardware/index.js';
import { naturalLogOf2 } from '../forward-constants.js';
import type { ExponentScale } from './exponents.js';

const { fp32 } = formats;

/** A row without a sum has an LSE of −∞, as the kernel decides. */
function isEmpty(rowSum: number): boolean {
  return rowSum === 0 || Number.isNaN(rowSum);
}

/** The LSE of a row, natural logarithm, from its maximum in use and its row sum. */
export type LogSumExp = (maximum: number, rowSum: number) => number;

/** (m·c + log2 l − offset)·ln 2 in fp64, with c in fp64. */
export function exactLogSumExp({ exact, offset }: ExponentScale): LogSumExp {
  return (maximum, rowSum) =>
    isEmpty(rowSum) ? -Infinity : (maximum * exact + (Math.log2(rowSum) - offset)) * Math.LN2;
}

/**
 * The kernel's instructions at the fp32 number nearest to the row sum, plus what the difference from
 * that contributes: (m·c + (lg2.approx.ftz(l) − offset))·ln 2, every operation fp32, to nearest even,
 * with c rounded to fp32, and m·c contracted with the sum where `isFused`.
 *
 * @param maximum an fp32 number
 */
export function emulatedLogSumExp({ rounded, offset }: ExponentScale, isFused: boolean): LogSumExp {
  const { fround } = Math;
  return (maximum, rowSum) => {
    if (isEmpty(rowSum)) return -Infinity;
    const nearest = fround(rowSum);
    const logarithm = fround(decode(fp32, lg2ApproxFtz(encode(fp32, nearest))) - offset);
    const total = isFused
      ? fusedMultiplyAddFloat32(maximum, rounded, logarithm)
      : fround(fround(maximum * rounded) + logarithm);
    const lse = fround(total * naturalLogOf2);
    const ratio = rowSum / nearest;
    return nearest === rowSum || !(ratio > 0 && ratio < Infinity) ? lse : lse + Math.log(ratio);
  };
}
