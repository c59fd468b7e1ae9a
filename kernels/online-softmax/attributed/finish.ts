import { fusedMultiplyAddFloat32 } from '../../../src/arith/index.js';
import {
  decode,
  decodeToFloat64,
  encode,
  encodeFromFloat64,
  formats,
} from '../../../src/formats/index.js';
import { lg2ApproxFtz, rcpApproxFtz } from '../../../src/hardware/index.js';
import { naturalLogOf2 } from '../../fa4/forward-constants.js';
import type { ExponentScale } from './weights.js';
import type { Fa4OutFormat } from '../../fa4/forward-formats.js';
import type { EmulatedTechniques } from './techniques.js';

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
  const reciprocal = decode(formats.fp32, rcpApproxFtz(encode(formats.fp32, nearestDivisor)));
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

/** Divides O [rows × columns] by the row sums: the outputs [rows × vDim] without the padding. */
export function normalisedOutput(
  sums: Float64Array,
  rowSums: Float64Array,
  size: { readonly rows: number; readonly columns: number; readonly vDim: number },
  emulated: EmulatedTechniques,
): Float64Array {
  const { rows, columns, vDim } = size;
  const normalise = emulated.has('normalise') ? emulatedNormalise : exactNormalise;
  const out = new Float64Array(rows * vDim);
  for (let row = 0; row < rows; row++) {
    const of = out.subarray(row * vDim, (row + 1) * vDim);
    of.set(sums.subarray(row * columns, row * columns + vDim));
    normalise(of, rowSums[row]);
  }
  return out;
}

/** The outputs rounded once to the format, to nearest even. */
export function roundedOutput(out: Float64Array, format: Fa4OutFormat): Float64Array {
  return decodeToFloat64(encodeFromFloat64(formats[format], out), formats[format]);
}

/** The LSEs of a tile's rows. */
export function rowLogSumExps(
  maxima: Float64Array,
  rowSums: Float64Array,
  rows: number,
  logSumExp: LogSumExp,
): Float64Array {
  return Float64Array.from({ length: rows }, (_, row) => logSumExp(maxima[row], rowSums[row]));
}
